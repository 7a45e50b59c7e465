"""Marked places in a Markdown page that a command fills: tables, and single numbers in a sentence.

    <!-- table: rollouts shear-flow-mini models=csm,fixed16 -->
    (rendered)
    <!-- end -->

    It is <!-- value: change shear-flow-mini csm:4-8-16 fixed16:16 vrmse_10 -->−34 %<!-- end -->.

A mark has a kind, names and options. Words with spaces are quoted. Items of a list are separated by
commas; a comma with a space behind it belongs to its item, as in `models="csm (keep, shifts),csm"`.
Marks in code, between backticks, are left alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from overtone.errors import OvertoneError

_MARK = re.compile(r"<!--\s*(?:(?P<what>table|value):(?P<said>.*?)|end)\s*-->", re.S)
_CODE = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$|`[^`\n]+`", re.S | re.M)
_OPTION = re.compile(r"([a-z]+)=(.*)", re.S)


class PageError(OvertoneError):
    """A page whose marks can't be read or filled."""


@dataclass(frozen=True)
class Block:
    """A place to fill.

    Attributes:
        what: `"table"`, which stands alone, or `"value"`, inside a line.
        kind: which table or value.
        names: what follows the kind.
        options: name -> items.
        line: of its mark, from 1.
        start, end: of what it holds, in the page's text.
    """

    what: str
    kind: str
    names: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    line: int
    start: int
    end: int

    def __str__(self) -> str:
        said = " ".join([self.kind, *self.names])
        return f"{self.what}: {said}"


def find_blocks(text: str) -> list[Block]:
    """All blocks of a page, in order."""
    code = [match.span() for match in _CODE.finditer(text)]
    blocks: list[Block] = []
    mark = None
    for match in _MARK.finditer(text):
        if any(start <= match.start() < end for start, end in code):
            continue
        line = _line(text, match)
        if mark is None and match["what"] is None:
            raise PageError(f"line {line}: <!-- end --> without a table or value before it")
        if mark is not None and match["what"] is not None:
            raise PageError(
                f"line {_line(text, mark)}: '{_said(mark)}' has no <!-- end --> before the next "
                f"mark in line {line}"
            )
        if mark is not None:
            blocks.append(_block(text, mark, match))
        mark = match if mark is None else None
    if mark is not None:
        raise PageError(f"line {_line(text, mark)}: '{_said(mark)}' has no <!-- end -->")
    return blocks


def content(text: str, block: Block) -> str:
    """What a block holds now."""
    return text[block.start : block.end]


def framed(block: Block, rendered: str) -> str:
    """What a block shall hold: a table with empty lines around it, a value as it is."""
    return f"\n\n{rendered}\n\n" if block.what == "table" else rendered


def fill(text: str, blocks: Sequence[Block], contents: Sequence[str]) -> str:
    """The page with other contents in its blocks."""
    parts, at = [], 0
    for block, new in zip(blocks, contents, strict=True):
        parts += [text[at : block.start], new]
        at = block.end
    return "".join([*parts, text[at:]])


def _block(text: str, mark: re.Match[str], end: re.Match[str]) -> Block:
    line = _line(text, mark)
    try:
        words = shlex.split(mark["said"])
    except ValueError as error:
        raise PageError(f"line {line}: '{_said(mark)}' can't be read: {error}") from None
    if not words:
        raise PageError(f"line {line}: '{_said(mark)}' names no kind, e.g. table: rollouts NAME")
    options, names = {}, []
    for word in words[1:]:
        option = _OPTION.fullmatch(word)
        if option is None:
            names.append(word)
            continue
        name, items = option.groups()
        if name in options:
            raise PageError(f"line {line}: option '{name}' is given twice")
        options[name] = tuple(re.split(r",(?! )", items))
    return Block(
        mark["what"], words[0], tuple(names), options, line, mark.end(), end.start()
    )  # fmt: skip


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def _said(mark: re.Match[str]) -> str:
    return f"{mark['what']}:{mark['said']}".strip()
