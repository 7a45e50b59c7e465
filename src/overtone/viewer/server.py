"""The server of `overtone view`: a page, and a websocket over which it watches models run.

Who may ask: this machine alone, unless a host is given; then whoever knows the token. A browser's
request must name this server as its host and as its origin, so that pages from elsewhere get
nothing, whatever name they have made point here. Files are those of the page, by a fixed list.

Who waits: models run in one thread, one request at a time; requests of all pages queue in the
order in which they came. A page's messages are answered one after the other, and none is read
before the last one was answered, so that a page can't fill the memory.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import secrets
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import torch

from overtone.errors import OvertoneError
from overtone.viewer.messages import MAX_BYTES, pack, read
from overtone.viewer.page import INDEX, files
from overtone.viewer.session import Session
from overtone.viewer.stage import Stage

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import HTTPConnection, Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket, WebSocketDisconnect
except ImportError as error:
    raise OvertoneError(
        f"the viewer needs the package '{error.name}': pip install 'overtone[viewer]'"
    ) from error

MAX_PAGES = 32
"""Pages that watch at the same time."""
MEMORY = 256_000_000
"""Bytes for the states to which pages can go back, all together as long as there are few pages."""
FEW = 4
COOKIE = "overtone-view"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load, as its browser enforces it: nothing from elsewhere."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Service:
    """All pages of one server.

    Args:
        stage: what there is to see.
        settings: what a page starts with, plain data; told as it is.
        token: what a request must know; None for this machine alone.
    """

    def __init__(
        self, stage: Stage, *, settings: dict[str, Any] | None = None, token: str | None = None
    ):
        self.token = token
        self.pages = 0
        self._stage = stage
        self._hello = stage.facts() | {"settings": settings or {}}
        self._turn = asyncio.Lock()  # first come, first served
        self._worker = ThreadPoolExecutor(1, "overtone-view", initializer=_one_core)

    @property
    def app(self) -> Starlette:
        """What answers."""
        routes = [
            Route("/", self._file),
            Route("/{name}", self._file),
            WebSocketRoute("/watch", self._watch),
        ]
        return Starlette(routes=routes)

    def close(self) -> None:
        """Let the request that is being answered end, and take no more."""
        self._worker.shutdown(cancel_futures=True)

    async def _file(self, request: Request) -> Response:
        if reason := self._refusal(request):
            return PlainTextResponse(reason, 403, HEADERS)
        name = request.path_params.get("name", INDEX)
        if name not in files():
            return PlainTextResponse("there is no such file", 404, HEADERS)
        content, kind = files()[name]
        response = Response(content, headers=HEADERS, media_type=kind)
        if self.token and "token" in request.query_params:
            response.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
        return response

    def _refusal(self, request: HTTPConnection) -> str:
        """Why a request is not answered; empty if it is."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if self.token is None and not is_loopback(host_name(host)):
            return "this server answers to localhost alone"
        if origin is not None and origin.partition("://")[2] != host:
            return "this server answers to its own page alone"
        given = request.query_params.get("token") or request.cookies.get(COOKIE, "")
        if self.token and not hmac.compare_digest(given.encode(), self.token.encode()):
            return "the token is missing or wrong; open the address that `overtone view` printed"
        return ""

    async def _watch(self, socket: WebSocket) -> None:
        # A program that is no browser names no origin; a page always does.
        if self._refusal(socket) or self.pages >= MAX_PAGES:
            await socket.close(1008 if self.pages < MAX_PAGES else 1013)
            return
        await socket.accept()
        self.pages += 1
        try:
            session = Session(self._stage, memory=MEMORY // max(FEW, self.pages))
            await socket.send_bytes(pack(self._hello))
            while True:
                await socket.send_bytes(await self._answer(session, await _received(socket)))
        except (WebSocketDisconnect, RuntimeError) as error:
            # Sending to a page that has just left is a RuntimeError of Starlette's.
            if isinstance(error, RuntimeError) and "websocket" not in str(error).lower():
                raise
        finally:
            self.pages -= 1

    async def _answer(self, session: Session, text: str | bytes) -> bytes:
        number = 0
        try:
            message = read(text)
            number = message.id
            async with self._turn:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._worker, session.answer, message)
        except OvertoneError as error:
            return pack({"type": "error", "id": number, "message": str(error)[:1000]})


def _one_core() -> None:
    # A second thread saves little with fields this small, and costs much on a busy machine.
    torch.set_num_threads(1)


async def _received(socket: WebSocket) -> str | bytes:
    event = await socket.receive()
    if event["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(event.get("code", 1000))
    text = event.get("text")
    return text if text is not None else event.get("bytes") or b""


def host_name(host: str) -> str:
    """The name in a `Host` header, without the port and the brackets of IPv6."""
    name, colon, port = host.rpartition(":")
    name = name if colon and port.isdigit() else host
    return name.strip("[]").lower()


def is_loopback(name: str) -> bool:
    """Whether a name means this machine, whatever resolves it."""
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound; an `OvertoneError` says why it can't be."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OvertoneError(f"host is '{host}', which is no address here: {error}") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(64)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise OvertoneError(
                f"port {port} is in use, perhaps by another `overtone view`; end that one, or "
                f"choose another with --port {port + 1}, or any free one with --port 0"
            ) from None
        raise OvertoneError(f"can't listen at {host}, port {port}: {error.strerror}") from None
    return bound


def new_token(host: str) -> str | None:
    """A secret for hosts that others can reach; None for this machine alone."""
    return None if is_loopback(host.lower()) else secrets.token_urlsafe(18)


def serve(
    stage: Stage,
    bound: socket.socket,
    *,
    settings: dict[str, Any] | None = None,
    token: str | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Answer pages until Ctrl-C.

    Args:
        stage: what there is to see.
        bound: as `listen` makes it; it is closed at the end.
        settings: what a page starts with.
        token: as `new_token` makes it.
        ready: called when the first page can be opened.
    """
    service = Service(stage, settings=settings, token=token)
    config = uvicorn.Config(
        service.app,
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="websockets-sansio",
        ws_max_size=4 * MAX_BYTES,
        ws_per_message_deflate=False,  # quantised fields hardly shrink
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    server = Server(config, ready)
    try:
        with suppress(KeyboardInterrupt):  # uvicorn raises it again once all is closed
            server.run(sockets=[bound])
    finally:
        service.close()
        bound.close()


class Server(uvicorn.Server):
    """uvicorn's, which says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]):
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self._ready()
