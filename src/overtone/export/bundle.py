"""`rollout.py` of an export folder: the player and the schedules in one file, without Overtone.

It is put together from this package's own source when a model is exported, so that there is one
text of every schedule and an export chooses what `overtone` would choose. Of each module below the
definitions that are named, or all, are taken in order; imports from this package are left out,
since what they name is above, and of the others those are kept that are used.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from overtone.version import __version__

PARTS: dict[str, tuple[str, ...]] = {
    "errors.py": ("OvertoneError", "DomainError", "PatchError"),
    "guard/names.py": ("shown", "_escaped"),
    "domain.py": ("MAX_AXES", "MAX_INT", "PerAxis", "per_axis", "is_int", "entries"),
    "grid.py": ("PatchGrid",),
    "schedules/kinds.py": (),
    "schedules/forms.py": (),
    "export/player.py": (),
}
"""File -> what of it is needed; nothing named is all of it."""
PACKAGE = Path(__file__).parents[1]
HEAD = '''"""Rollouts of an exported model with NumPy and ONNX Runtime; no torch, no Overtone.

Put together by overtone {version} from its own source; `README.md` says how to use it.
"""

from __future__ import annotations

'''
TYPES = """
Domain = Any
\"\"\"Only named here: schedules ask a domain for its number of axes alone.\"\"\"
Tensor = Any
\"\"\"Only named here: what moves a grid within a program.\"\"\"
"""


def bundle() -> str:
    """The text of the file."""
    imports, bodies = [], []
    for name, wanted in PARTS.items():
        text = (PACKAGE / name).read_text()
        tree = ast.parse(text)
        imports += [node for node in _imported(tree) if _is_foreign(node)]
        bodies.append(_definitions(text, tree, wanted))
    body = "\n\n\n".join(bodies) + "\n"
    return HEAD.format(version=__version__) + _imports(imports, body) + TYPES + "\n\n" + body


def _definitions(text: str, tree: ast.Module, wanted: tuple[str, ...]) -> str:
    """Source of some definitions, or of all, with what describes a constant below it."""
    lines, kept, last = text.splitlines(), [], None
    for node in tree.body[1:]:  # the first is the docstring
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        names = _names(node)
        described = isinstance(node, ast.Expr) and last is not None
        if not wanted or described or {*names} & {*wanted}:
            gap = [] if described or not kept else [""] * (1 if names and _plain(node) else 2)
            kept += [*gap, *lines[_first(node) - 1 : node.end_lineno]]
            last = node
        else:
            last = None
    return "\n".join(kept)


def _first(node: ast.stmt) -> int:
    """The line that a definition begins at, with its decorators."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.decorator_list:
        return node.decorator_list[0].lineno
    return node.lineno


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets += [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _plain(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Assign, ast.AnnAssign))


def _imported(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]


def _is_foreign(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether it imports from elsewhere than this package and torch."""
    name = (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
    return name.partition(".")[0] not in ("overtone", "torch", "__future__")


def _imports(nodes: list[ast.Import | ast.ImportFrom], body: str) -> str:
    """What is used of some imports, each module once; NumPy is no module of Python's own."""
    whole, parts = set(), {}
    for node in nodes:
        for alias in node.names:
            if not re.search(rf"\b{alias.asname or alias.name}\b", body):
                continue
            if isinstance(node, ast.ImportFrom):
                parts.setdefault(node.module, set()).add(alias.name)
            else:
                whole.add(f"import {alias.name}" + (f" as {alias.asname}" * bool(alias.asname)))
    lines = [f"from {module} import {', '.join(sorted(parts[module]))}" for module in sorted(parts)]
    numpy = {line for line in whole if "numpy" in line}
    return "\n".join([*sorted(whole - numpy), *lines, "", *sorted(numpy)]) + "\n"
