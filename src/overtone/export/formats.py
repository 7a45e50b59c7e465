"""The three formats of a program: how each is written, and loaded again to be tried.

| format | file            | runs in                             | tied to                    |
|--------|-----------------|-------------------------------------|----------------------------|
| `onnx` | `NAME.onnx`     | ONNX Runtime: Python, C, C++, C#, … | nothing                    |
| `pt2`  | `NAME.pt2`      | torch, in Python                    | this torch or a newer one  |
| `aoti` | `NAME.aoti.pt2` | libtorch: Python and C++            | this torch, system, chip   |

`pt2` is `torch.export`'s own format, `aoti` the machine code that AOTInductor makes of it.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from overtone.errors import ExportError, require_one_of
from overtone.export.rewriting import translations

OPSET = 20
"""Version of ONNX's operators: the first with Gelu and with Fourier transforms along any axis."""
INPUTS, OUTPUT = ("window", "shift"), "frame"
"""What a program's tensors are called."""

Call = Callable[[Tensor, Tensor | None], Tensor]
"""A loaded program: window, and shift where it takes one, to frame."""


@dataclass(frozen=True)
class Format:
    """A format by its functions.

    Attributes:
        suffix: how its files end.
        write: from a program to a file.
        load: from a file to what can be called.
        tolerance: largest difference from the model, see `verify`, with which it passes.
        exact: whether it takes the model's complex numbers, see `program.trace`.
        needs: packages that must be there, of the extra `export`.
    """

    suffix: str
    write: Callable[[ExportedProgram, Path], None]
    load: Callable[[Path], Call]
    tolerance: float
    exact: bool = False
    needs: tuple[str, ...] = ()


def _write_pt2(program: ExportedProgram, path: Path) -> None:
    torch.export.save(program, path)


def _load_pt2(path: Path) -> Call:
    return _with_tensors(torch.export.load(path).module())


def _write_onnx(program: ExportedProgram, path: Path) -> None:
    given = INPUTS[: len(program.graph_signature.user_inputs)]
    written = torch.onnx.export(
        program,
        dynamo=True,
        opset_version=OPSET,
        custom_translation_table=translations(),
        input_names=given,
        output_names=(OUTPUT,),
        verbose=False,
    )
    assert written is not None
    graph = written.model.graph
    shape = graph.inputs[0].shape
    assert shape is not None
    (free,) = {str(size) for size in shape if not isinstance(size, int)}
    _name_batch(graph.inputs, free)
    for node in graph.all_nodes():
        node.metadata_props.clear()  # the same of torch's graph once more, twice the size
        _name_batch(node.outputs, free)
    written.save(path)


def _name_batch(values: Iterable[Any], free: str) -> None:
    """Call the free size of ONNX values `batch`, also within formulas, instead of torch's name."""
    from onnx_ir import Shape

    def named(size: Any) -> Any:
        known = size if isinstance(size, int) else size.value  # None where nothing is known
        return re.sub(rf"\b{free}\b", "batch", known) if isinstance(known, str) else known

    for value in values:
        if value.shape is not None:
            value.shape = Shape([named(size) for size in value.shape])


def _load_onnx(path: Path) -> Call:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def call(window: Tensor, shift: Tensor | None) -> Tensor:
        given = {"window": window.numpy()} | ({} if shift is None else {"shift": shift.numpy()})
        (frame,) = session.run([OUTPUT], given)
        return torch.from_numpy(frame)

    return call


def _write_aoti(program: ExportedProgram, path: Path) -> None:
    from torch._inductor import aoti_compile_and_package

    aoti_compile_and_package(program, package_path=str(path))


def _load_aoti(path: Path) -> Call:
    from torch._inductor import aoti_load_package

    return _with_tensors(aoti_load_package(str(path)))


def _with_tensors(program: Callable[..., Tensor]) -> Call:
    return lambda window, shift: program(window) if shift is None else program(window, shift)


FORMATS = {
    "onnx": Format(
        ".onnx", _write_onnx, _load_onnx, 1e-4, needs=("onnx", "onnxscript", "onnxruntime")
    ),
    "pt2": Format(".pt2", _write_pt2, _load_pt2, 1e-6, exact=True),
    "aoti": Format(".aoti.pt2", _write_aoti, _load_aoti, 1e-4),
}


def require_format(name: str) -> None:
    """Refuse a format that is not known, or for which something is not installed."""
    from importlib.util import find_spec

    require_one_of(name, FORMATS, "format", ExportError)
    missing = [package for package in FORMATS[name].needs if find_spec(package) is None]
    if missing:
        raise ExportError(
            f"the format '{name}' needs {', '.join(missing)}; install them with: "
            "pip install 'overtone[export]'"
        )
    if name == "aoti":
        _require_compiler()


def _require_compiler() -> None:
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except (InvalidCxxCompiler, RuntimeError) as error:
        raise ExportError(
            "the format 'aoti' needs a C++ compiler, and none was found; install g++ or clang++, "
            "or name yours in the variable CXX. The formats 'onnx' and 'pt2' need none"
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Within it, torch's exporters keep to themselves what is none of the user's business."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)
