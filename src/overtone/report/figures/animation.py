"""Truth against one or two predictions as a moving picture: GIF, or MP4 with the `video` extra."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from PIL import Image

from overtone.errors import OvertoneError, PatchError
from overtone.evaluate.results import Results
from overtone.evaluate.samples import Samples
from overtone.files import replacing
from overtone.report.figures.panels import Key, Scene, draw_images, draw_lines, scene
from overtone.report.figures.scales import visible
from overtone.report.series import series
from overtone.report.style import Picture, assign, drawing
from overtone.schedules import Constant, Cycle, Schedule, parse_schedule

DPI = 80
NO_VIDEO = "ffmpeg can't write the video; the disk may be full"


def animate(
    samples: Samples,
    keys: Sequence[Key],
    path: str | Path,
    field: str | None = None,
    fps: int = 8,
    bare: frozenset[str] = frozenset(),
) -> Path:
    """Write an animation with one frame for each step of the samples.

    Args:
        samples: frames of one trajectory.
        keys: model and schedule of one or two predictions.
        path: ends in `.gif` or `.mp4`.
        field: its name; the first by default.
        fps: frames in a second.
        bare: names of models without patches.
    """
    path, keys = Path(path), [(model, schedule) for model, schedule in keys]
    writers = {".gif": _write_gif, ".mp4": _write_mp4}
    if path.suffix not in writers:
        raise OvertoneError(f"'{path.name}' can't be animated; expected a name in .gif or .mp4")
    if len(keys) not in (1, 2):
        raise OvertoneError(f"{len(keys)} predictions to animate; expected one or two")
    if fps < 1:
        raise OvertoneError(f"fps is {fps}; expected at least 1")
    whole = scene(samples, field, keys, samples.steps, bare=bare)
    with replacing(path) as scratch:
        writers[path.suffix](scratch, frames(whole), fps)
    return path


def frames(whole: Scene) -> Iterator[np.ndarray]:
    """Pictures `(height, width, 3)` of all steps of a scene, on its common scale."""
    with drawing():
        figure, update = stage(whole)
    canvas = FigureCanvasAgg(figure)
    for i, step in enumerate(whole.steps):
        with drawing():
            update(i)
            figure.suptitle(f"{whole.when(step)} (of {whole.steps[-1]} steps)", fontsize=10)
            canvas.draw()
            figure.set_layout_engine("none")  # nothing may move from frame to frame
        yield np.asarray(canvas.buffer_rgba())[..., :3].copy()


def stage(whole: Scene) -> tuple[Picture, Callable[[int], None]]:
    """The first frame's figure, and a function that turns it into that of any other step."""
    predictions = tuple(prediction[:1] for prediction in whole.predictions)
    first = replace(whole, steps=whole.steps[:1], truth=whole.truth[:1], predictions=predictions)
    if whole.domain.ndim == 1:
        known = assign(schedule for _, schedule in whole.samples.predictions)
        figure, fields, residuals = draw_lines(first, known, timed=False)
    else:
        figure, fields, residuals = draw_images(first, timed=False)
    figure.set_dpi(DPI)

    def update(i: int) -> None:
        for artist, (_, j) in fields:
            _put(artist, whole.truth[i] if j < 0 else whole.predictions[j][i])
        for artist, (_, j) in residuals:
            _put(artist, whole.predictions[j][i] - whole.truth[i])

    return figure, update


def _put(artist: Line2D | AxesImage, values: np.ndarray) -> None:
    if isinstance(artist, Line2D):
        artist.set_ydata(values)
    else:
        assert isinstance(artist.norm, Normalize)
        artist.set_data(visible(values, artist.norm).T)


def _write_gif(path: Path, pictures: Iterator[np.ndarray], fps: int) -> None:
    # Coverage keeps the residuals' rare strong colours, which a median cut would merge.
    how: Any = {"method": Image.Quantize.MAXCOVERAGE, "dither": Image.Dither.NONE}
    images = (Image.fromarray(picture).quantize(256, **how) for picture in pictures)
    first = next(images)
    first.save(
        path, format="GIF", save_all=True, append_images=images, duration=round(1000 / fps), loop=0
    )


def _write_mp4(path: Path, pictures: Iterator[np.ndarray], fps: int) -> None:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise OvertoneError(
            "MP4 needs the package imageio-ffmpeg; install it with `pip install overtone[video]`, "
            "or write a .gif"
        ) from error
    first = next(pictures)
    height, width = (n - n % 2 for n in first.shape[:2])  # the codec wants even sizes
    writer = imageio_ffmpeg.write_frames(
        str(path), (width, height), fps=fps, macro_block_size=2, output_params=["-f", "mp4"]
    )
    sent = 0
    try:
        writer.send(None)
        for picture in chain([first], pictures):
            writer.send(np.ascontiguousarray(picture[:height, :width]))
            sent += 1
        writer.close()
        kept, _ = imageio_ffmpeg.count_frames_and_secs(str(path))
    except (OSError, RuntimeError) as error:
        raise OSError(errno.EIO, NO_VIDEO, str(path)) from error
    if kept != sent:  # on a full disk, the program ends without a word
        raise OSError(errno.EIO, NO_VIDEO, str(path))


def telling_pair(results: Results, samples: Samples) -> list[Key]:
    """What `contrast` finds; else the first two predictions that there are, or the only one."""
    return contrast(results, samples) or list(samples.predictions)[:2]


def contrast(results: Results, samples: Samples) -> list[Key]:
    """The worst constant schedule of the coarsest patch and the best cycle, if there are both."""
    errors = {(s.model, s.schedule): s.vrmse_all.value for s in series(results)}
    kept = [key for key in samples.predictions if key in errors]
    constants = [(key, s) for key in kept if isinstance(s := _parse(key[1]), Constant)]
    cycles = [key for key in kept if isinstance(_parse(key[1]), Cycle)]
    if not constants or not cycles:
        return []
    coarsest = max(_size(s) for _, s in constants)
    worst = max((k for k, s in constants if _size(s) == coarsest), key=lambda k: _rank(errors[k]))
    return [worst, min(cycles, key=lambda k: _rank(errors[k]))]


def _parse(text: str) -> Schedule | None:
    try:
        schedule = parse_schedule(text)
    except PatchError:
        return None
    return schedule


def _size(schedule: Constant) -> int:
    return schedule.patch if isinstance(schedule.patch, int) else max(schedule.patch)


def _rank(error: float) -> float:
    """Errors that are not finite are the worst."""
    return error if np.isfinite(error) else np.inf
