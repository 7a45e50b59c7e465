"""A page of results: prose by hand, and tables and numbers rendered from `results/*.json`.

Blocks are marked as in `studies.page.blocks`; `TABLES` lists the tables, `studies.page
.values` the single numbers. What was not run yet says so, with the command that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from overtone.errors import OvertoneError, suggest
from overtone.files import replacing
from overtone.report.series import num_seeds
from studies.page import assess_tables, assess_values, file_tables
from studies.page.blocks import Block, PageError, content, fill, find_blocks, framed
from studies.page.model_tables import forms, next_step, setting, training, tried
from studies.page.plan_tables import plans
from studies.page.rollout_tables import (
    artifacts,
    bands,
    comparison,
    matrix,
    physics,
    rollouts,
    schedules,
    seams,
)
from studies.page.sources import Library, Options, Source, study_of
from studies.page.spectrum_tables import energy, swell
from studies.page.values import NOT_RUN, render_value


@dataclass(frozen=True)
class Kind:
    """A kind of table.

    Attributes:
        make: comparisons and options -> Markdown.
        options: names of the options that it takes.
        several: whether it takes several comparisons.
        pooled: whether it shows means over seeds.
    """

    make: Callable[[Sequence[Source], Options], str]
    options: tuple[str, ...] = ()
    several: bool = True
    pooled: bool = True


CHOICE = ("models", "schedules")
TABLES: dict[str, Kind] = {
    "next-step": Kind(next_step, ("models", "against")),
    "rollouts": Kind(rollouts, (*CHOICE, "relative")),
    "schedules": Kind(schedules, (*CHOICE, "relative"), several=False),
    "matrix": Kind(matrix, (*CHOICE, "quantity"), several=False),
    "seams": Kind(seams, (*CHOICE, "period", "steps"), several=False),
    "artifacts": Kind(artifacts, (*CHOICE, "quantity", "steps", "periods"), several=False),
    "bands": Kind(bands, CHOICE),
    "physics": Kind(physics, (*CHOICE, "steps", "laws"), several=False),
    "swell": Kind(swell, (*CHOICE, "fields", "axis", "periods")),
    "energy": Kind(energy, CHOICE),
    "comparison": Kind(comparison, CHOICE),
    "plans": Kind(plans, ("relative",)),
    "training": Kind(training, ("models",), pooled=False),
    "tried": Kind(tried, ("models", "against")),
    "forms": Kind(forms, several=False, pooled=False),
    "setting": Kind(setting, pooled=False),
}


@dataclass(frozen=True)
class Page:
    """A rendered page.

    Attributes:
        text: all of it.
        blocks: how many it has.
        stale: those that held something else before.
        waiting: those that lack results.
    """

    text: str
    blocks: int
    stale: tuple[Block, ...]
    waiting: tuple[Block, ...]


def render_page(text: str, results: str | Path) -> Page:
    """Fill every block of a page.

    Args:
        text: the page.
        results: folder with a `STUDY.json` for each study that was run.
    """
    library = Library(results)
    blocks = find_blocks(text)
    contents = [framed(block, _render(block, library)) for block in blocks]
    stale = [b for b, new in zip(blocks, contents, strict=True) if content(text, b) != new]
    waiting = [b for b, new in zip(blocks, contents, strict=True) if NOT_RUN in new]
    return Page(fill(text, blocks, contents), len(blocks), tuple(stale), tuple(waiting))


def update_page(path: str | Path, results: str | Path, *, write: bool = True) -> Page:
    """Render a page's file in place; with `write=False` only look."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PageError(f"the page '{path}' can't be read: {error}") from error
    try:
        page = render_page(text, results)
    except PageError as error:
        raise PageError(f"'{path}', {error}") from error
    if write and page.stale:
        with replacing(path) as scratch:
            scratch.write_text(page.text, encoding="utf-8")
    return page


def _render(block: Block, library: Library) -> str:
    try:
        if block.what == "value" and block.kind in assess_values.KINDS:
            return assess_values.render(block.kind, block.names, library.folder)
        if block.what == "value":
            return render_value(block, library)
        for tables in (assess_tables, file_tables):
            if block.kind in tables.KINDS:
                return tables.render(block.kind, block.names, library.folder)
        return _render_table(block, library)
    except OvertoneError as error:
        raise PageError(f"line {block.line}, '{block}': {error}") from error


def _render_table(block: Block, library: Library) -> str:
    kind = _kind(block)
    found = {name: library.source(name) for name in block.names}
    sources = [source for source in found.values() if source is not None]
    parts = [kind.make(sources, block.options)] if sources else []
    seeds = max((num_seeds(source.results) for source in sources), default=1)
    if kind.pooled and seeds > 1:
        parts.append(
            f"Means of {seeds} seeds; in round brackets the lowest and the highest of them."
        )
    for name in (name for name, source in found.items() if source is None):
        said = f"{NOT_RUN}: `make reproduce STUDY={study_of(name)}`"
        parts.append(said if len(found) == 1 else f"{name} {said}")
    return "\n\n".join(parts)


def _kind(block: Block) -> Kind:
    if block.kind not in TABLES:
        raise PageError(
            f"there is no table '{block.kind}'{suggest(block.kind, list(TABLES))}; there are "
            f"{', '.join(TABLES)}"
        )
    kind = TABLES[block.kind]
    if not block.names or (len(block.names) > 1 and not kind.several):
        count = "at least one comparison" if kind.several else "one comparison"
        given = ", ".join(block.names) or "none"
        raise PageError(f"table '{block.kind}' takes {count}; given: {given}")
    for name in block.options:
        if name not in kind.options:
            raise PageError(
                f"table '{block.kind}' has no option '{name}'{suggest(name, kind.options)}; it has "
                f"{', '.join(kind.options) or 'none'}"
            )
    return kind
