"""Names that come from files and users: as file names, and as text to be shown.

A name is data. `file_name` lets it become a part of a path only if it can lead nowhere else;
`shown` writes it so that a terminal prints it instead of obeying it. What else would interpret it
is told not to where it is used: rich by `progress.Terminal`, matplotlib by `drawn`, HTML by
`html.escape`.
"""

from __future__ import annotations

import re

from overtone.errors import OvertoneError

MAX_BYTES = 120
"""Longest file name from a user, in bytes; file systems take 255, and we add suffixes."""
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Devices on Windows, whatever their suffix."""
SEPARATORS = '/\\:<>"|?*'
"""What separates folders, drives and streams somewhere, or can't be in a name there."""


def file_name(
    text: str, what: str = "the name", *, error: type[OvertoneError] = OvertoneError
) -> str:
    """The same text, if it can be one part of a path on every system.

    Args:
        text: from a file, or from the user.
        what: what it is, for the error.
        error: the exception to raise.
    """
    reason = _objection(text)
    if reason:
        raise error(
            f"{what} is '{shown(text)}', which {reason}; it would become the name of a file. "
            "Expected letters, digits, '.', '-', '_' or spaces: choose another name"
        )
    return text


def _objection(text: str) -> str:
    """Why a text can't be a file name; empty if it can."""
    if not text.strip():
        return "is empty"
    if len(text.encode(errors="surrogateescape")) > MAX_BYTES:
        return f"is longer than {MAX_BYTES} bytes"
    if shown(text) != text:
        return "has characters that can't be printed"
    if any(character in SEPARATORS for character in text):
        return "has a character that separates folders or is not allowed everywhere"
    if text.startswith((".", "-", "~")) or text != text.strip() or text.endswith("."):
        return "begins or ends with a character that file systems or shells take for something else"
    return "is reserved for a device" if RESERVED.fullmatch(text) else ""


def shown(text: object) -> str:
    r"""A text as it may be printed: what is no visible character is escaped, e.g. `\x1b`.

    Line breaks and tabs are escaped, too; a message of several lines is to be split first.
    """
    return "".join(c if c.isprintable() else _escaped(c) for c in str(text))


def shown_lines(text: object) -> str:
    """As `shown`, but line breaks stay."""
    return "\n".join(map(shown, str(text).split("\n")))


def drawn(text: object) -> str:
    """A text as matplotlib is to draw it: a dollar sign begins no formula."""
    return shown(text).replace("$", r"\$")


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8, as Python carries it along
        code -= 0xDC00
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
