"""One look for all figures: which schedule has which colour, line, marker and hatch.

A schedule's look depends on the schedules of the results alone, so it is the same in every figure.
Colours are those of Okabe and Ito, which colour-blind readers can tell apart; lines, markers and
hatches tell the schedules apart without colour. A shifted schedule has the colour and marker of the
schedule that it shifts, a dashed line and a hollow marker.
"""

from __future__ import annotations

import functools
import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from overtone.errors import DataError, OvertoneError, require_one_of
from overtone.evaluate.results import Results
from overtone.files import replacing
from overtone.guard.names import drawn, shown
from overtone.schedules import Constant, Patch

if TYPE_CHECKING:
    from matplotlib.axis import Tick
    from matplotlib.collections import FillBetweenPolyCollection
    from matplotlib.colorbar import Colorbar
    from matplotlib.container import BarContainer, ErrorbarContainer
    from matplotlib.image import AxesImage
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    class _Panel(Axes):
        """Axes, and what we call on them: matplotlib gives keyword arguments no type."""

        def axhline(self, *args: Any, **kwargs: Any) -> Line2D: ...
        def axvline(self, *args: Any, **kwargs: Any) -> Line2D: ...
        def bar(self, *args: Any, **kwargs: Any) -> BarContainer: ...
        def errorbar(self, *args: Any, **kwargs: Any) -> ErrorbarContainer: ...
        def fill_between(self, *args: Any, **kwargs: Any) -> FillBetweenPolyCollection: ...
        def grid(self, *args: Any, **kwargs: Any) -> None: ...
        def imshow(self, *args: Any, **kwargs: Any) -> AxesImage: ...
        def legend(self, *args: Any, **kwargs: Any) -> Legend: ...
        def plot(self, *args: Any, **kwargs: Any) -> list[Line2D]: ...
        def set_title(self, *args: Any, **kwargs: Any) -> Text: ...
        def set_xlabel(self, *args: Any, **kwargs: Any) -> Text: ...
        def set_xticks(self, *args: Any, **kwargs: Any) -> list[Tick]: ...
        def text(self, *args: Any, **kwargs: Any) -> Text: ...
        def tick_params(self, *args: Any, **kwargs: Any) -> None: ...

    class _Sheet(FigureBase):
        """A figure or a part of one, likewise."""

        def colorbar(self, *args: Any, **kwargs: Any) -> Colorbar: ...
        def subfigures(self, *args: Any, **kwargs: Any) -> Any: ...
        def suptitle(self, *args: Any, **kwargs: Any) -> Text: ...
        def supylabel(self, *args: Any, **kwargs: Any) -> Text: ...

    class _Figure(_Sheet, Figure):
        def set_layout_engine(self, *args: Any, **kwargs: Any) -> None: ...

    Panel = _Panel
    Sheet = _Sheet

else:
    Panel, Sheet, _Figure = Axes, FigureBase, Figure

DPI = 110
SIGN = "Overtone"
"""What our PNG files name as their software."""
HEAD = 500
"""Bytes of a PNG in which that stands: before the picture itself."""
WIDE = 9.5
"""Inches: the width of figures with several columns."""

BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#555555"
FIXED = {"16": VERMILION, "4-8-16": BLUE, "4": GREY, "8": GREEN}
"""The most frequent schedules have the same colours in every report."""
COLOURS = ("#CC79A7", "#E69F00", "#56B4E9", "#8C564B", BLUE, VERMILION, GREEN, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "*", ">", "h")
HATCHES = ("", "..", "xx", "oo", "++", "--", "**")
SLANTS = ("//", "\\\\", "||")
"""Hatches of shifted schedules."""
YARDSTICK_DASHES = {"persistence": (0, (1, 1.2)), "extrapolation": (0, (6, 1.5, 1, 1.5))}
"""Lines of what needs no training, which are thin and grey."""
DASHES = ((0, (5, 2)), (0, (2, 1.2)), (0, (7, 1.5, 1.5, 1.5)), (0, (4, 1, 1, 1, 1, 1)))

FIELD_COLOURS = "viridis"
"""Colour map of fields."""
SIGNED_COLOURS = "RdBu_r"
"""Colour map of residuals, and of fields of both signs."""
SIZE_COLOURS = "cividis"
"""Colour map of the sizes of errors."""
DECIBEL_COLOURS = "PuOr_r"
"""Colour map of ratios, even ones in the middle."""

RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "image.interpolation": "nearest",
    "figure.facecolor": "white",
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "overtone",  # the same figure gives the same file
    "svg.fonttype": "path",
}


class NothingToDraw(OvertoneError):
    """The results lack what a figure shows."""


@dataclass(frozen=True)
class Look:
    """How a schedule is drawn.

    Attributes:
        colour: of lines, markers and bars.
        line: solid, or dashes if the schedule is shifted.
        marker: its shape.
        hollow: whether the marker is empty; so it is for shifted schedules.
        hatch: of bars.
    """

    colour: str
    line: Any
    marker: str
    hollow: bool
    hatch: str

    def curve(self, num_points: int = 1, first: int = 0) -> dict[str, Any]:
        """Arguments of `plot`, with about eight markers along the line from the `first` on."""
        every = max(1, num_points // 8)
        return self.line_only() | {
            "marker": self.marker,
            "markerfacecolor": "white" if self.hollow else self.colour,
            "markevery": (first % every, every),
        }

    def line_only(self) -> dict[str, Any]:
        """Arguments of `plot` for a line without markers."""
        return {"color": self.colour, "linestyle": self.line}


P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Let a function draw with our fonts and lines, whatever the caller's settings are."""

    @functools.wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with drawing():
            return draw(*args, **kwargs)

    return inside


@contextmanager
def drawing() -> Iterator[None]:
    """Our fonts and lines, and names in any script."""
    with matplotlib.rc_context(RC), any_script():
        yield


@contextmanager
def any_script() -> Iterator[None]:
    """Draw names in scripts that the font lacks as boxes, without a warning for each letter."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


class Picture(_Figure):
    """A figure that notebooks show as it is, without pyplot."""

    def _repr_png_(self) -> bytes:
        target = io.BytesIO()
        with drawing():
            self.savefig(target, format="png", dpi=DPI)
        return target.getvalue()


def new_figure(width: float, height: float) -> Picture:
    """An empty figure, in inches. It belongs to nobody but the caller, unlike pyplot's."""
    figure = Picture(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def looks(results: Results) -> dict[str, Look]:
    """The look of every schedule, and of every patch as a constant schedule."""
    schedules = [run.schedule for model in results.models for run in model.runs]
    patches = [patch_name(step.patch) for model in results.models for step in model.next_step]
    return assign([*schedules, *patches])


def assign(schedules: Iterable[str]) -> dict[str, Look]:
    """The look of each of the given schedules."""
    names = list(dict.fromkeys(schedules))
    bases = list(dict.fromkeys(_base(name) for name in names))
    free = [colour for colour in COLOURS if colour not in {FIXED.get(base) for base in bases}]
    others = [base for base in bases if base not in FIXED]
    colours = FIXED | {base: free[i % len(free)] for i, base in enumerate(others)}
    shifted = {base: [n for n in names if _base(n) == base and n != base] for base in bases}
    return {
        name: _look(name, bases.index(_base(name)), colours[_base(name)], shifted[_base(name)])
        for name in names
    }


def _base(schedule: str) -> str:
    return schedule.partition("+shift")[0]


def _look(name: str, index: int, colour: str, shifted: Sequence[str]) -> Look:
    hollow = name in shifted
    line = DASHES[shifted.index(name) % len(DASHES)] if hollow else "-"
    hatches, number = (SLANTS, shifted.index(name)) if hollow else (HATCHES, index)
    hatch = hatches[number % len(hatches)]
    return Look(colour, line, MARKERS[index % len(MARKERS)], hollow, hatch)


def patch_name(patch: Patch) -> str:
    """A patch as schedules write it, e.g. `4x8`."""
    return str(Constant(patch))


def text(name: str, limit: int = 40) -> str:
    """A user's string for a figure: no mathematics, one line, not endless, and never nothing."""
    name = shown(re.sub(r"\s+", " ", name).strip()) or "(no name)"
    if len(name) > limit:
        # Names in a row differ at their ends more often than in the middle: "… (A)", "… (B)".
        tail = (limit - 1) // 3
        name = f"{name[: limit - 1 - tail]}…{name[len(name) - tail :]}"
    # matplotlib leaves out legend entries that begin with an underscore.
    return (" " if name.startswith("_") else "") + drawn(name)


def short(value: float, _: object = None) -> str:
    """A number in few characters: 0.05, 300, 20k, 3M."""
    for size, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if suffix == 'k' else size):g}{suffix}"
    return f"{value:g}"


def fit_scale(axes: Axes, which: str, values: Iterable[float]) -> None:
    """A logarithmic axis, `"x"` or `"y"`, where the positive values span enough for one."""
    positive = [v for v in values if math.isfinite(v) and v > 0]
    ratio = max(positive) / min(positive) if positive else 1.0
    if ratio < 3:
        return
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    # Within two decades, powers of ten alone would leave one or two ticks.
    ticks = (1, 1.5, 2, 3, 5, 7) if ratio < 8 else (1, 2, 5) if ratio < 100 else (1,)
    axis.set_major_locator(LogLocator(subs=ticks))
    axis.set_minor_formatter(NullFormatter())
    if ratio < 1e4:
        axis.set_major_formatter(FuncFormatter(short))
    if ratio < 100:
        axis.set_minor_locator(NullLocator())


def add_legend(figure: Figure, handles: Sequence[Any], title: str = "schedule") -> None:
    """One legend below all panels, in as many columns as fit; its rows make the figure taller."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = int(figure.get_size_inches()[0] / (0.075 * longest + 0.75))
    columns = max(1, min(columns, len(handles)))
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.2 * (-(-len(handles) // columns) - 1))
    figure.legend(
        handles=list(handles),
        title=title,
        loc="outside lower center",
        handlelength=3.2,  # long enough to show dashes
        ncols=columns,
    )


def schedule_handles(labels: Mapping[str, str], known: dict[str, Look]) -> list[Line2D]:
    """Legend entries of schedules, each with its label."""
    return [Line2D([], [], label=text(to), **known[name].curve()) for name, to in labels.items()]


def yardstick_line(name: str, x: Sequence[float] = (), y: Sequence[float] = ()) -> Line2D:
    """A thin grey line of what needs no training, or its legend entry if there are no points."""
    return Line2D(
        x, y, color="#808080", linewidth=0.8, linestyle=YARDSTICK_DASHES.get(name, "-"),
        zorder=1.5, label=text(name), gid=shown(f"yardstick {name}"),
    )  # fmt: skip


def add_quietly(axes: Axes, line: Line2D, *, level: bool = False) -> None:
    """Add a line that is cut off where it leaves the panel: it never moves an axis.

    Args:
        axes: where.
        line: what to add.
        level: whether its x are shares of the panel's width, from 0 to 1.
    """
    if level:
        line.set_transform(axes.get_yaxis_transform())
    axes.add_artist(line)  # unlike a plot, an artist is not asked how much room it needs


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write `name.png` and `name.svg`; each file is complete or absent."""
    paths = folder / f"{name}.png", folder / f"{name}.svg"
    with matplotlib.rc_context(RC):
        for path in paths:
            save_as(figure, path)
            figure.set_layout_engine("none")  # laid out once; doing it again takes as long
    return paths


def save_as(figure: Figure, path: Path, dpi: int = DPI) -> None:
    """Write one file, a PNG if its suffix says nothing else; it is complete or absent.

    A PNG that somebody else drew is not replaced: ours say so in their first bytes.
    """
    kind = path.suffix[1:].lower() or "png"
    # A date in the file would make two equal pictures differ.
    metadata: dict[str, Any] = {"svg": {"Date": None}, "png": {"Software": SIGN}}.get(kind, {})
    if kind == "png" and path.is_file() and SIGN.encode() not in path.read_bytes()[:HEAD]:
        raise DataError(
            f"'{path}' exists and is not a picture that Overtone drew; it is left alone. Move it "
            "away, or choose another name with --out"
        )
    require_one_of(kind, figure.canvas.get_supported_filetypes(), f"the format of '{path}'")
    with any_script(), replacing(path) as scratch:
        figure.savefig(scratch, format=kind, dpi=dpi, metadata=metadata)
