"""What an export folder says to its reader: `README.md`, and examples in C and C++.

The examples are whole programs, `examples/` of this room, with the model's numbers in their places:
`@CONTEXT@` becomes 8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from overtone.domain import Domain
from overtone.export.manifest import Exported, Source
from overtone.export.program import moved_axes
from overtone.guard.names import shown
from overtone.models.base import Model

EXAMPLES = Path(__file__).parent / "examples"
OF_FORMAT = {"onnx": ("rollout.c",), "aoti": ("rollout.cpp", "CMakeLists.txt"), "pt2": ()}
"""Format -> its examples."""


def examples(model: Model, domain: Domain, programs: Sequence[Exported]) -> dict[str, str]:
    """File name -> text, of all examples that the written formats have."""
    found = {}
    for kind, names in OF_FORMAT.items():
        first = next((program.file for program in programs if program.format == kind), None)
        for name in names if first else ():
            text = (EXAMPLES / name).read_text()
            for key, value in _numbers(model, domain, str(first)).items():
                text = text.replace(f"@{key}@", value)
            found[name] = text
    return found


def _numbers(model: Model, domain: Domain, file: str) -> dict[str, str]:
    shifts = any(moved_axes(model, domain))
    return {
        "FILE": file,
        "CONTEXT": str(model.context),
        "FIELDS": str(len(domain.fields)),
        "AXES": str(domain.ndim),
        "CELLS": ", ".join(map(str, domain.shape)),
        "SPACE": " x ".join(map(str, domain.shape)),
        "NUM_CELLS": str(math.prod(domain.shape)),
        "NUM_INPUTS": "2" if shifts else "1",
        "TAKES_SHIFT": "true" if shifts else "false",
    }


def readme(
    model: Model,
    domain: Domain,
    source: Source,
    programs: Sequence[Exported],
    units: Mapping[str, str],
) -> str:
    """The text of `README.md`; arguments as for `manifest`."""
    formats = dict.fromkeys(program.format for program in programs)
    shape = f"({model.context}, {len(domain.fields)}, {', '.join(map(str, domain.shape))})"
    parts = [
        f"# {shown(source.name)}, exported\n",
        "Programs that predict the next frame of a simulation. They need neither Overtone nor, as "
        "ONNX, torch. `manifest.json` says all of this for machines.\n",
        _table(programs),
        f"\n**In**: `window`, float32 `(B, {shape[1:]}`: any number of samples, "
        f"{model.context} frames, the oldest first, {_fields(domain, units)}, on "
        f"{' x '.join(map(str, domain.shape))} cells of a domain of "
        f"{' x '.join(f'{length:g}' for length in domain.extent)}, `dt` = {domain.dt:g} between "
        f"frames. Physical units, as the model was trained on.{_shift(model, domain)}\n",
        "**Out**: `frame`, the next one, without the axis of frames.\n",
        f"Boundaries: {_boundaries(domain)}. Another number of cells needs another export "
        "(`--grid`).\n",
        *(SECTIONS[kind] for kind in formats),
    ]
    text = "\n".join(parts)
    for key, value in _numbers(model, domain, "").items():
        text = text.replace(f"@{key}@", value)
    for kind in formats:
        first = next(program for program in programs if program.format == kind)
        text = text.replace(f"@{kind}@", first.file)
    cycle = "-".join(dict.fromkeys(map(_size, programs)))
    moved = moved_axes(model, domain)
    text = text.replace("@SCHEDULE@", f"{cycle}+shift" if all(moved) else cycle)
    return text.replace("@SHIFT@", f", torch.tensor({[0] * domain.ndim})" if any(moved) else "")


def _table(programs: Sequence[Exported]) -> str:
    rows = [
        f"| `{program.file}` | {_size(program)} | {program.format} | {program.difference:.1e} |"
        for program in programs
    ]
    head = "| file | patch | format | difference from the model |\n|---|---|---|---|"
    note = "Differences are those of the worst cell of a few steps, in standard deviations of its"
    return "\n".join([head, *rows]) + f"\n\n{note} field."


def _size(program: Exported) -> str:
    sizes = (program.patch,) if isinstance(program.patch, int) else program.patch
    return "x".join(map(str, sizes))


def _fields(domain: Domain, units: Mapping[str, str]) -> str:
    names = [f"{shown(name)}{f' [{shown(units[name])}]' if name in units else ''}"
             for name in domain.fields]  # fmt: skip
    return f"the fields {', '.join(names)}" if len(names) > 1 else f"the field {names[0]}"


def _boundaries(domain: Domain) -> str:
    sides = [
        lower if lower == upper else f"{lower} below and {upper} above"
        for lower, upper in domain.boundaries
    ]
    return ", ".join(f"{side} along axis {axis}" for axis, side in enumerate(sides))


def _shift(model: Model, domain: Domain) -> str:
    moved = [str(axis) for axis, move in enumerate(moved_axes(model, domain)) if move]
    if not moved:
        return " The patch grid can't be moved." if model.patched else ""
    text = f"\n`shift`, int64 `({domain.ndim},)`: cells by which the patch grid is moved"
    return text + ("." if len(moved) == domain.ndim else f"; axis {', '.join(moved)} alone moves.")


SECTIONS = {
    "onnx": """## ONNX: without torch

`rollout.py` needs NumPy and ONNX Runtime (`pip install numpy onnxruntime`) and plays every schedule
that Overtone knows:

```python
import numpy as np
from rollout import Player

player = Player()
window = np.load("window.npy")  # (B, @CONTEXT@, @FIELDS@, @CELLS@)
for frame in player.rollout(window, steps=10, schedule="@SCHEDULE@"):
    print(frame.shape, frame.mean())
frame = player.step(window, patch=player.patches[0])
```

or `python rollout.py window.npy --steps 10 --schedule @SCHEDULE@ --out frames.npy`. One step by
hand, in any language that ONNX Runtime has: session of `@onnx@`, inputs by their names, output
`frame`. `rollout.c` is a whole program in C.
""",
    "pt2": """## pt2: with torch, in Python

```python
import torch

step = torch.export.load("@pt2@").module()
window = torch.randn(1, @CONTEXT@, @FIELDS@, @CELLS@)
with torch.no_grad():
    for _ in range(10):
        frame = step(window@SHIFT@)
        window = torch.cat([window[:, 1:], frame[:, None]], dim=1)
```

torch unpacks such a file with its own reader; load only files that you trust.
""",
    "aoti": """## AOTInductor: machine code, in Python and C++

It fits this version of torch, this system and this kind of processor. It holds a library that is
loaded, so use only files that you trust.

```python
import torch

step = torch._inductor.aoti_load_package("@aoti@")
window = torch.randn(1, @CONTEXT@, @FIELDS@, @CELLS@)
frame = step(window@SHIFT@)
```

```cpp
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>

int main() {
  const c10::InferenceMode guard;
  torch::inductor::AOTIModelPackageLoader program("@aoti@");
  std::vector<at::Tensor> inputs{torch::randn({1, @CONTEXT@, @FIELDS@, @CELLS@})};
  if (@TAKES_SHIFT@) inputs.push_back(torch::zeros({@AXES@}, torch::kInt64));
  std::cout << program.run(inputs)[0].sizes() << "\\n";
}
```

`rollout.cpp` is a whole rollout; its first lines say how `CMakeLists.txt` builds it.
""",
}
"""Format -> what the README says of it."""
