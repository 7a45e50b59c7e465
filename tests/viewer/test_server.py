"""The server, over real sockets on this machine: who gets what, who waits, what it survives."""

import asyncio
import http.client
import json
import random
import re
import threading
from contextlib import closing, contextmanager

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("websockets")

import websockets
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import connect

from overtone.errors import OvertoneError
from overtone.viewer import server as module
from overtone.viewer.messages import MAX_BYTES, unpack
from overtone.viewer.page import files
from overtone.viewer.server import Service, host_name, is_loopback, listen, new_token

OPEN = {"type": "open", "trajectory": 0, "start": 1, "lanes": [{"model": 0, "schedule": "8"}]}


@contextmanager
def running(stage, token=None):
    """A server in a thread of its own; its port and its service come back."""
    bound = listen("127.0.0.1", 0)
    ready, kept = threading.Event(), {}

    class Kept(module.Server):
        def __init__(self, config, on_ready):
            super().__init__(config, on_ready)
            kept["server"] = self

        def install_signal_handlers(self):
            pass

    class KeptService(Service):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            kept["service"] = self

    before = module.Server, module.Service
    module.Server, module.Service = Kept, KeptService
    options = {"settings": {"lanes": OPEN["lanes"]}, "token": token, "ready": ready.set}
    thread = threading.Thread(target=module.serve, args=(stage, bound), kwargs=options)
    thread.start()
    try:
        assert ready.wait(20)
        yield bound.getsockname()[1], kept["service"]
    finally:
        module.Server, module.Service = before
        kept["server"].should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def port(make_stage):
    with running(make_stage()) as (number, _):
        yield number


def get(port, path="/", **headers):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())


@contextmanager
def page(port, **options):
    """A page that has been greeted, and how it asks."""
    with connect(f"ws://127.0.0.1:{port}/watch", max_size=None, **options) as socket:
        hello, _ = unpack(socket.recv())
        assert hello["type"] == "hello"

        def ask(message):
            text = message if isinstance(message, str | bytes) else json.dumps(message)
            socket.send(text)
            return unpack(socket.recv())[0]

        yield ask


def test_the_page_is_served_with_a_policy_that_lets_nothing_else_in(port):
    for name, (content, kind) in files().items():
        status, body, headers = get(port, f"/{name}")
        assert (status, body) == (200, content)
        assert headers["content-type"].startswith(kind)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert get(port)[1] == files()["index.html"][0]


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/%2e%2e/stage.py", "/..%2fstage.py", "/stage.py", "/page/main.js",
     "//etc/passwd", "/main.js/..", "/.", "/index.html%00"],
)  # fmt: skip
def test_no_path_reaches_the_file_system(port, path):
    status, body, _ = get(port, path)
    assert status in (404, 400, 307)
    assert b"import" not in body


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""])
def test_other_hosts_are_refused(port, host):
    assert get(port, Host=f"{host}:{port}")[0] in (403, 400)
    with pytest.raises((InvalidStatus, WebSocketException)):
        connect(f"ws://127.0.0.1:{port}/watch", additional_headers={"Host": host or "x"})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_this_machine_is_known_by_its_names(port, host):
    assert get(port, Host=f"{host}:{port}")[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "file://"])
def test_pages_from_elsewhere_are_refused(port, origin):
    with pytest.raises(InvalidStatus), page(port, origin=origin):
        pass
    assert get(port, Origin=origin)[0] == 403


def test_its_own_page_watches(port):
    with page(port, origin=f"http://127.0.0.1:{port}") as ask:
        assert ask(OPEN)["step"] == 0
        assert ask({"type": "step", "id": 5})["id"] == 5


def test_with_a_token_nobody_watches_without_it(make_stage):
    with running(make_stage(), token="secret") as (port, _):
        assert get(port)[0] == 403
        assert get(port, "/?token=wrong")[0] == 403
        assert get(port, "/main.js")[0] == 403
        status, _, headers = get(port, "/?token=secret")
        assert status == 200
        cookie = headers["set-cookie"].partition(";")[0]
        assert "HttpOnly" in headers["set-cookie"]
        assert "samesite=strict" in headers["set-cookie"].lower()
        assert get(port, "/main.js", Cookie=cookie)[0] == 200
        with pytest.raises(InvalidStatus), page(port):
            pass
        with page(port, additional_headers={"Cookie": cookie}) as ask:
            assert ask(OPEN)["step"] == 0


def test_who_needs_a_token():
    assert new_token("127.0.0.1") is None
    assert new_token("localhost") is None
    assert new_token("::1") is None
    assert len(new_token("0.0.0.0")) >= 20
    assert new_token("0.0.0.0") != new_token("0.0.0.0")


@pytest.mark.parametrize(
    ("host", "name", "loopback"),
    [
        ("localhost:8000", "localhost", True),
        ("LOCALHOST", "localhost", True),
        ("127.0.0.1:80", "127.0.0.1", True),
        ("127.9.9.9", "127.9.9.9", True),
        ("[::1]:80", "::1", True),
        ("[::1]", "::1", True),
        ("localhost.evil.example:80", "localhost.evil.example", False),
        ("0.0.0.0", "0.0.0.0", False),
        ("192.168.0.1:80", "192.168.0.1", False),
        ("", "", False),
    ],
)
def test_hosts(host, name, loopback):
    assert host_name(host) == name
    assert is_loopback(name) is loopback


def test_mistakes_are_answered_and_the_page_goes_on(port):
    with page(port) as ask:
        assert "send 'open' first" in ask({"type": "step"})["message"]
        ask(OPEN)
        for wrong in (
            "{",
            b"\xff",
            "[]",
            {"type": "steer", "lane": 0, "schedule": "7"},
            "x" * 20_000,
        ):
            assert ask(wrong)["type"] == "error"
        assert ask({"type": "step"})["step"] == 1


def test_an_oversized_message_ends_its_page_alone(port):
    with page(port) as other:
        with page(port) as ask, pytest.raises(ConnectionClosed):
            ask("x" * (8 * MAX_BYTES))
        assert other(OPEN)["step"] == 0


@pytest.mark.fuzz
def test_garbage_by_the_hundred_and_the_next_page_is_served(port):
    random.seed(0)
    alphabet = '{}[]",:0123456789.eE+-truefalsnl type open step back lane schedule'
    with page(port) as ask:
        ask(OPEN)
        for _ in range(300):
            text = "".join(random.choices(alphabet, k=random.randrange(60)))
            assert ask(text)["type"] == "error"
        assert ask({"type": "step"})["step"] == 1
    with page(port) as ask:
        assert ask(OPEN)["step"] == 0


def test_pages_are_served_in_turn(make_stage):
    """Two pages that both ask without end get on alike."""
    with running(make_stage()) as (port, _):
        counts = [0, 0]

        def play(place, stop):
            with page(port) as ask:
                ask(OPEN)
                while not stop.is_set():
                    counts[place] = ask({"type": "step"})["step"]

        stop = threading.Event()
        threads = [threading.Thread(target=play, args=(n, stop)) for n in range(2)]
        for thread in threads:
            thread.start()
        while min(counts) < 15:
            stop.wait(0.02)
        stop.set()
        for thread in threads:
            thread.join(20)
        assert max(counts) < 3 * min(counts)


def test_too_many_pages_are_told_and_room_is_made_again(make_stage, monkeypatch):
    monkeypatch.setattr(module, "MAX_PAGES", 1)
    with running(make_stage()) as (port, service):
        with page(port), pytest.raises(InvalidStatus), page(port):
            pass
        for _ in range(200):
            if not service.pages:
                break
            threading.Event().wait(0.02)
        with page(port) as ask:
            assert ask(OPEN)["step"] == 0


def test_a_page_that_leaves_in_the_middle_is_forgotten(make_stage):
    with running(make_stage()) as (port, service):
        for _ in range(5):
            with connect(f"ws://127.0.0.1:{port}/watch", max_size=None) as socket:
                socket.recv()
                socket.send(json.dumps(OPEN))
                for _ in range(5):
                    socket.send('{"type": "step", "count": 20}')
        for _ in range(500):
            if not service.pages:
                break
            threading.Event().wait(0.02)
        assert service.pages == 0


def test_a_used_port_says_so():
    with closing(listen("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
        with pytest.raises(OvertoneError, match=f"port {port} is in use.*--port {port + 1}"):
            listen("127.0.0.1", port)


def test_a_host_that_is_none_says_so():
    with pytest.raises(OvertoneError, match="no address here|can't listen"):
        listen("no-such-host.invalid", 0)


def test_the_worker_asks_for_one_core():
    import torch

    before = torch.get_num_threads()
    module._one_core()
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)


def test_answers_come_in_order_even_if_many_are_sent_at_once(port):
    async def flood():
        async with websockets.connect(f"ws://127.0.0.1:{port}/watch", max_size=None) as socket:
            await socket.recv()
            await socket.send(json.dumps(OPEN))
            for number in range(1, 40):
                await socket.send(json.dumps({"type": "step", "id": number}))
            return [unpack(await socket.recv())[0]["id"] for _ in range(40)]

    assert asyncio.run(flood()) == [0, *range(1, 40)]


def test_the_policy_names_no_other_place():
    assert not re.search(r"https?:|\*|unsafe", module.POLICY)
