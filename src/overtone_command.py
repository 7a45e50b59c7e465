"""The program `overtone`, outside of the package, whose import takes seconds: Ctrl-C may come."""

from __future__ import annotations

import sys


def main() -> None:
    """Load the command line and run it; an interruption on the way is one line and code 130."""
    try:
        from overtone.cli.app import main as run
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    run()
