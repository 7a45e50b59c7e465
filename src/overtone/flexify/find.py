"""Finding the layers to make flexible, and saying what there is when they are not found."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from torch import nn

from overtone.acceptance import short_patch
from overtone.errors import OvertoneError, PatchError, suggest
from overtone.flexify.layers import Conv, ConvTranspose

MOST_LISTED = 8


def find_encoder(model: nn.Module, name: str) -> Any:
    """The convolution of a name, with stride = kernel."""
    module = _named(model, name, "encoder")
    if not isinstance(module, Conv):
        raise OvertoneError(
            f"encoder '{name}' is a {type(module).__name__}; expected a Conv1d, Conv2d or Conv3d "
            f"that makes the patches. {describe_candidates(model)}"
        )
    _require_patches(module, name, "encoder", model)
    return module


def find_decoder(model: nn.Module, name: str, base: tuple[int, ...]) -> Any:
    """The transposed convolution or `Linear` of a name that makes patches of the base size."""
    module = _named(model, name, "decoder")
    if isinstance(module, nn.Linear):
        if module.out_features % math.prod(base):
            raise PatchError(
                f"decoder '{name}' gives {module.out_features} values for each token, no multiple "
                f"of the {math.prod(base)} cells of a patch {short_patch(base)}: it can't be what "
                f"makes the patches. {describe_candidates(model)}"
            )
        return module
    if not isinstance(module, ConvTranspose):
        raise OvertoneError(
            f"decoder '{name}' is a {type(module).__name__}; expected a ConvTranspose, or a Linear "
            f"that gives each token its patch; None for a model that decodes by queries. "
            f"{describe_candidates(model)}"
        )
    _require_patches(module, name, "decoder", model)
    if tuple(module.kernel_size) != base:
        raise PatchError(
            f"decoder '{name}' makes patches of {tuple(module.kernel_size)} cells, the encoder "
            f"reads {base}: the output lies on another grid than the input. "
            f"{describe_candidates(model)}"
        )
    return module


def describe_candidates(model: nn.Module) -> str:
    """The layers of a model that could be meant, in words."""
    convs: list[tuple[str, Any]]
    convs = [(n, m) for n, m in model.named_modules() if isinstance(m, (Conv, ConvTranspose))]
    patching = [(n, m) for n, m in convs if tuple(m.kernel_size) == tuple(m.stride)]
    patching = [(n, m) for n, m in patching if max(m.kernel_size) > 1]
    encoders = [_describe(n, m) for n, m in patching if isinstance(m, Conv)]
    decoders = [_describe(n, m) for n, m in patching if isinstance(m, ConvTranspose)]
    kernels = {math.prod(m.kernel_size) for _, m in patching if isinstance(m, Conv)}
    decoders += [
        f"'{n}' (Linear, {m.out_features} values)"
        for n, m in model.named_modules()
        if isinstance(m, nn.Linear) and any(m.out_features % k == 0 for k in kernels)
    ]
    if not encoders and not decoders:
        others = _list(_describe(n, m) for n, m in convs) or "no convolutions at all"
        return f"The model has no layer with stride = kernel; it has {others}"
    found = f"Encoders found: {_list(encoders) or 'none'}."
    return f"{found} Decoders found: {_list(decoders) or 'none'}"


def _named(model: nn.Module, name: str, role: str) -> nn.Module:
    modules = dict(model.named_modules())
    if name not in modules or not name:
        raise OvertoneError(
            f"{role} '{name}' is no layer of {type(model).__name__}{suggest(name, list(modules))}. "
            f"{describe_candidates(model)}"
        )
    return modules[name]


def _require_patches(module: Any, name: str, role: str, model: nn.Module) -> None:
    kernel, stride = tuple(module.kernel_size), tuple(module.stride)
    if kernel != stride:
        raise PatchError(
            f"{role} '{name}' has kernel {kernel} and stride {stride}; expected stride = kernel. "
            f"{describe_candidates(model)}"
        )
    extra = [*module.output_padding] if isinstance(module, ConvTranspose) else []
    if module.padding in ("valid", "same"):
        padded = module.padding == "same"
    else:
        padded = any([*module.padding, *extra])
    if padded or any(step != 1 for step in module.dilation):
        raise PatchError(
            f"{role} '{name}' has padding {module.padding} and dilation {module.dilation}; patches "
            "that tile the grid need padding 0 and dilation 1"
        )


def _describe(name: str, module: Any) -> str:
    kernel, stride = short_patch(tuple(module.kernel_size)), short_patch(tuple(module.stride))
    return f"'{name}' ({type(module).__name__}, kernel {kernel}, stride {stride})"


def _list(items: Iterable[str]) -> str:
    items = list(items)
    more = [f"and {len(items) - MOST_LISTED} more"] if len(items) > MOST_LISTED else []
    return ", ".join(items[:MOST_LISTED] + more)
