"""Rollouts of an exported model with NumPy and ONNX Runtime, without torch and without Overtone.

    from rollout import Player

    player = Player("FOLDER")
    for frame in player.rollout(window, steps=40, schedule="4-8-16+shift"):
        ...

or, with arrays in files:

    python rollout.py window.npy --steps 40 --schedule 4-8-16+shift --out frames.npy
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from overtone.domain import PerAxis, per_axis
from overtone.errors import OvertoneError
from overtone.schedules import Patch, Schedule, parse_schedule


class Player:
    """The programs of an export folder.

    Args:
        folder: where `manifest.json` is; that of this file by default.
        threads: of ONNX Runtime; as many as it likes by default.
        providers: what ONNX Runtime computes on, the first that it knows.

    Attributes:
        manifest: all that `manifest.json` says.
        context: frames that a window must have.
        shape: number of cells along each axis.
        patches: those that there are programs for.
    """

    def __init__(
        self,
        folder: str | Path = Path(__file__).parent,
        *,
        threads: int = 0,
        providers: Sequence[str] = ("CPUExecutionProvider",),
    ):
        self.folder = Path(folder)
        self.manifest: dict[str, Any] = _manifest(self.folder)
        self.context: int = self.manifest["context"]
        self.shape: tuple[int, ...] = tuple(self.manifest["domain"]["shape"])
        self._programs = {
            per_axis(program["patch"], len(self.shape), "patch"): program
            for program in self.manifest["programs"]
            if program["format"] == "onnx"
        }
        if not self._programs:
            raise OvertoneError(
                f"'{self.folder}' holds no ONNX programs; export the model with --format onnx"
            )
        self.patches = [program["patch"] for program in self._programs.values()]
        self._threads, self._providers = threads, list(providers)
        self._sessions: dict[tuple[int, ...], Any] = {}

    def step(self, window: np.ndarray, patch: Patch, shift: PerAxis = 0) -> np.ndarray:
        """The next frame `(B, C, *space)` of a window `(B, T, C, *space)`, in physical units.

        Args:
            window: of more than `context` frames the latest are used.
            patch: cells of a token, one int or one for each axis.
            shift: cells by which the patch grid is moved, likewise.
        """
        given = self._window(window)
        sizes = self._patch(patch)
        inputs = {"window": given}
        shifts = per_axis(shift, len(self.shape), "shift")
        if self.manifest["patched"]:
            self._require_shift(sizes, shifts)
        if any(self.manifest["shift"]):
            inputs["shift"] = np.array(shifts, dtype=np.int64)
        (frame,) = self._session(sizes).run(["frame"], inputs)
        return frame

    def rollout(
        self, window: np.ndarray, *, steps: int, schedule: Schedule | str | int, hold: bool = False
    ) -> Iterator[np.ndarray]:
        """Predict `steps` frames `(B, C, *space)`, each from those before it.

        Args:
            window: where to start, `(B, T, C, *space)`.
            steps: number of frames.
            schedule: patch and shift of each step, e.g. `"4-8-16+shift"`, or one patch.
            hold: leave the grid where it is along axes without shifts, instead of refusing to.
        """
        if steps < 0:
            raise OvertoneError(f"steps is {steps}; expected 0 or more")
        window, chosen = self._window(window), parse_schedule(schedule)
        for step in range(steps):
            choice = chosen(step)
            shift = per_axis(choice.shift[: len(self.shape)], len(self.shape), "shift")
            if hold:
                moved = self.manifest["shift"]
                shift = tuple(s * move for s, move in zip(shift, moved, strict=True))
            frame = self.step(window, choice.patch, shift)
            if not np.isfinite(frame).all():
                raise OvertoneError(
                    f"the frame of step {step} is not finite; the {step} frames before it are. Try "
                    "a schedule with finer patches or fewer steps"
                )
            window = np.concatenate([window[:, 1:], frame[:, None]], axis=1)
            yield frame

    def _window(self, window: np.ndarray) -> np.ndarray:
        fields = self.manifest["domain"]["fields"]
        ends = (len(fields), *self.shape)
        window = np.asarray(window)
        if window.ndim != len(ends) + 2 or window.shape[2:] != ends:
            raise OvertoneError(
                f"the window has shape {window.shape}; expected (B, T, {', '.join(map(str, ends))})"
                f" with the fields {', '.join(fields)}. These programs are for one grid"
            )
        if window.shape[1] < self.context:
            raise OvertoneError(
                f"the window has {window.shape[1]} frames; expected at least {self.context}"
            )
        if window.dtype.kind != "f" or not np.isfinite(window).all():
            raise OvertoneError("the window holds other values than finite floating-point numbers")
        return np.ascontiguousarray(window[:, -self.context :], dtype=np.float32)

    def _patch(self, patch: Patch) -> tuple[int, ...]:
        """The sizes of a program's patch; where there are no patches, any will do."""
        if not self.manifest["patched"]:
            return next(iter(self._programs))
        sizes = per_axis(patch, len(self.shape), "patch")
        if sizes not in self._programs:
            raise OvertoneError(
                f"there is no ONNX program for patch {patch}; there is one for "
                f"{', '.join(map(str, self.patches))}. Export the model with --patch {patch}"
            )
        return sizes

    def _require_shift(self, sizes: tuple[int, ...], shifts: tuple[int, ...]) -> None:
        """Refuse to move the grid along an axis where it can't be; by whole patches it isn't."""
        for axis, move in enumerate(self.manifest["shift"]):
            if not move and shifts[axis] % sizes[axis]:
                raise OvertoneError(
                    f"the shift is {shifts}; along axis {axis} these programs take none, since "
                    "it is not periodic, or the model knows places. Choose offsets that are 0 "
                    "there (+shift:at:3x0-5x0), or hold=True (--hold), which leaves the grid there"
                )

    def _session(self, sizes: tuple[int, ...]) -> Any:
        """The program of a patch, loaded when it is needed first."""
        if sizes not in self._sessions:
            name = self._programs[sizes]["file"]
            path = self.folder / name
            if not path.is_file():
                raise OvertoneError(f"'{path}' is not there; copy the whole folder")
            if hashlib.sha256(path.read_bytes()).hexdigest() != self.manifest["files"][name]:
                raise OvertoneError(f"'{path}' is not the file that was exported; export it again")
            try:
                import onnxruntime
            except ImportError as error:
                raise OvertoneError("ONNX Runtime is missing: pip install onnxruntime") from error
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = self._threads
            self._sessions[sizes] = onnxruntime.InferenceSession(
                str(path), options, providers=self._providers
            )
        return self._sessions[sizes]


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise OvertoneError(
            f"'{path}' can't be read ({error}); expected a folder that overtone export wrote"
        ) from error
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """From a window in a file to frames in a file."""
    parser = argparse.ArgumentParser(description="Roll out an exported model by ONNX Runtime.")
    parser.add_argument("window", help=".npy file with a window (B, T, C, *space)")
    parser.add_argument("--steps", type=int, default=10, help="number of frames")
    parser.add_argument("--schedule", help="e.g. 4-8-16+shift; the first patch by default")
    parser.add_argument("--hold", action="store_true", help="no shifts where there can't be any")
    parser.add_argument("--out", default="frames.npy", help=".npy file for (B, steps, C, *space)")
    given = parser.parse_args(arguments)
    try:
        if given.steps < 1:
            raise OvertoneError(f"--steps is {given.steps}; expected 1 or more")
        player, window = Player(), _load(given.window)
        schedule = given.schedule or _written(player.patches[0])
        frames = player.rollout(window, steps=given.steps, schedule=schedule, hold=given.hold)
        frames = np.stack(list(frames), axis=1)
        with open(given.out, "wb") as file:  # np.save by itself would give it another name
            np.save(file, frames)
    except (OvertoneError, OSError) as error:
        parser.error(str(error))
    print(f"wrote {given.out}")


def _load(path: str) -> np.ndarray:
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise OvertoneError(f"'{path}' holds no array of numbers; expected a .npy file") from error
    if not isinstance(found, np.ndarray):
        found.close()
        raise OvertoneError(f"'{path}' holds several arrays; expected a .npy file with one")
    return found


def _written(patch: int | list[int]) -> str:
    return str(patch) if isinstance(patch, int) else "x".join(map(str, patch))


if __name__ == "__main__":
    main()
