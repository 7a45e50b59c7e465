"""The layers of somebody's model: finding those to make flexible, and making them so.

A layer is named by the user; where the name is wrong, the error says which layers could be meant.

It is made flexible by giving it a subclass of its own class, made on the spot. The subclass
replaces `forward`, or turns some attributes (parameters, buffers, stored sizes) into properties
that answer for the patch in use. The module keeps its identity, parameters, hooks and state dict;
`isinstance` still holds; `copy` and `pickle` work, as the subclass is made again from the original
class. At the base patch the original `forward` and the original attributes are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from torch import Tensor, nn

from overtone.errors import OvertoneError, PatchError, suggest
from overtone.flexify.layers import Conv, ConvTranspose
from overtone.flexify.patching import ATTACHED, Patching
from overtone.models.base import short_patch

OWN = "_own_"
"""Begins the names under which a module keeps attributes that are viewed. Read by their own names,
graphs of older versions of torch would ask the view, which asks for them."""
MOST_LISTED = 8
"""Layers that an error names."""

Computation = Callable[[Any, Tensor, Patching], Tensor]
"""A module's forward at a patch other than its base."""

View = Callable[[Any, Patching], Any]
"""From an attribute's own value to its value at a patch other than the base."""


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
    """The transposed convolution or `Linear` of a name that makes patches of the base size.

    A convolution is none of them; see `find_shuffle`.
    """
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
            f"decoder '{name}' is a {type(module).__name__}; expected a ConvTranspose, a Linear "
            "that gives each token its patch, or a Conv2d that a PixelShuffle follows; None for a "
            f"model that decodes by queries. "
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


def find_shuffle(model: nn.Module, name: str, base: tuple[int, ...]) -> tuple[str, str] | None:
    """Names of a convolution and of the `PixelShuffle` behind it, if a name stands for such a pair.

    The name may be that of the convolution, or of a `Sequential` that holds both.
    """
    module = _named(model, name, "decoder")
    if isinstance(module, nn.Sequential):
        place, first = (
            module,
            next((k for k, m in module._modules.items() if isinstance(m, nn.Conv2d)), None),
        )
        prefix = f"{name}."
    else:
        owner, _, first = name.rpartition(".")
        place, prefix = model.get_submodule(owner), f"{owner}." if owner else ""
    if first is None or not isinstance(place._modules[first], nn.Conv2d):
        return None
    behind = [*place._modules.items()][list(place._modules).index(first) + 1 :]
    found = next((key for key, m in behind if isinstance(m, nn.PixelShuffle)), None)
    if found is None:
        return None
    _require_shuffled(place._modules[first], place._modules[found], prefix + first, base)
    return prefix + first, prefix + found


def _require_shuffled(conv: Any, shuffle: Any, name: str, base: tuple[int, ...]) -> None:
    factor, kernel = shuffle.upscale_factor, tuple(conv.kernel_size)
    if base != (factor, factor):
        raise PatchError(
            f"decoder '{name}' and its PixelShuffle make patches of {factor} x {factor} cells, the "
            f"encoder reads {base}: the output lies on another grid than the input, or tokens are "
            "merged in between, as in a Swin, which has no one patch. Only a decoder that undoes "
            "the encoder's patch can follow it"
        )
    padding = conv.padding if conv.padding in ("same", "valid") else tuple(conv.padding)
    same = tuple(size // 2 for size in kernel)
    kept = padding == "same" or padding == same or (padding == "valid" and not any(same))
    plain = (tuple(conv.stride), tuple(conv.dilation), conv.groups) == ((1, 1), (1, 1), 1)
    zeros = conv.padding_mode == "zeros" or not any(same)
    if not (kept and plain and zeros and all(size % 2 for size in kernel)):
        raise PatchError(
            f"decoder '{name}' has kernel {kernel}, stride {tuple(conv.stride)}, padding "
            f"{conv.padding} ({conv.padding_mode}), dilation {tuple(conv.dilation)} and "
            f"{conv.groups} groups; before a PixelShuffle only a convolution that keeps the token "
            "grid can follow the patch: an odd kernel, stride 1, padding of zeros by half of it"
        )


def describe_candidates(model: nn.Module) -> str:
    """The layers of a model that could be meant, in words."""
    convs: list[tuple[str, Any]]
    convs = [(n, m) for n, m in model.named_modules() if isinstance(m, (Conv, ConvTranspose))]
    patching = [(n, m) for n, m in convs if tuple(m.kernel_size) == tuple(m.stride)]
    patching = [(n, m) for n, m in patching if max(m.kernel_size) > 1]
    encoders = [_describe(n, m) for n, m in patching if isinstance(m, Conv)]
    decoders = [_describe(n, m) for n, m in patching if isinstance(m, ConvTranspose)]
    kernels = {math.prod(m.kernel_size) for _, m in patching if isinstance(m, Conv)}
    if any(isinstance(module, nn.PixelShuffle) for module in model.modules()):
        plain: list[tuple[str, Any]]
        plain = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Conv2d)]
        decoders += [
            _describe(n, m) for n, m in plain if any(m.out_channels % k == 0 for k in kernels)
            and (n, m) not in patching
        ]  # fmt: skip
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


@dataclass(eq=False)
class Attachment:
    """What was attached to a module: its computation, and views of its attributes by name."""

    patching: Patching
    computation: Computation | None = None
    views: dict[str, View] = field(default_factory=dict)


def require_attachable(module: nn.Module, attachment: Attachment) -> None:
    """Refuse a module whose forward would not be the one of its class."""
    if attachment.computation is not None and "forward" in module.__dict__:
        raise OvertoneError(
            f"{type(module).__name__} has a 'forward' of its own, set on the instance, which would "
            "bypass flexible patching; flexify the model before wrapping its layers"
        )


def attach(module: nn.Module, attachment: Attachment) -> None:
    """Make a module flexible."""
    module.__dict__[ATTACHED] = attachment
    names = tuple(sorted(attachment.views))
    for name in names:
        if name in module.__dict__:
            module.__dict__[OWN + name] = module.__dict__[name]
    module.__class__ = flexible_class(type(module), names, attachment.computation is not None)


@cache
def flexible_class(base: type, names: tuple[str, ...], computes: bool) -> type:
    """The subclass of a module's class with properties of some names, and maybe a forward."""
    namespace: dict[str, Any] = {name: _viewed(name) for name in names}
    if computes:
        namespace["forward"] = _computed(base)

    def extra_repr(self: Any) -> str:
        own = self._overtone
        known = ", ".join(str(short_patch(size)) for size in own.patching.patches)
        notes = [f"{own.patching.mode} at patches {known}"] if computes else []
        notes += [f"following the patch: {', '.join(names)}"] if names else []
        return "; ".join(filter(None, [base.extra_repr(self), *notes]))

    def __reduce_ex__(self: nn.Module, protocol: Any) -> tuple[Any, ...]:
        return _blank, (base, names, computes), self.__getstate__()

    namespace |= {"extra_repr": extra_repr, "__reduce_ex__": __reduce_ex__}
    namespace["__module__"] = base.__module__
    return type(f"Flexible{base.__name__}", (base,), namespace)


def _named(model: nn.Module, name: str, role: str) -> nn.Module:
    modules = dict(model.named_modules())
    if name not in modules or not name:
        raise OvertoneError(
            f"{role} '{name}' is not a layer of {type(model).__name__}"
            f"{suggest(name, list(modules))}. {describe_candidates(model)}"
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


def _blank(base: type, names: tuple[str, ...], computes: bool) -> Any:
    """A flexible module without content, for unpickling to fill."""
    cls: Any = flexible_class(base, names, computes)
    return cls.__new__(cls)


def _computed(base: type) -> Callable[..., Tensor]:
    def forward(self: Any, x: Tensor, *arguments: Any, **options: Any) -> Tensor:
        own = self._overtone
        if own.patching.patch == own.patching.base:
            return base.forward(self, x, *arguments, **options)
        return own.computation(self, x, own.patching)

    return forward


def _viewed(name: str) -> property:
    def get(self: Any) -> Any:
        own = self._overtone
        value = _stored(self, name)
        if own.patching.patch == own.patching.base:
            return value
        return own.views[name](value, own.patching)

    def put(self: Any, value: Any) -> None:
        # Parameters and buffers never come here: nn.Module sets those in its own dictionaries.
        self.__dict__[name] = self.__dict__[OWN + name] = value

    return property(get, put)


def _stored(module: nn.Module, name: str) -> Any:
    """An attribute as the module itself keeps it."""
    if name in module._parameters:
        return module._parameters[name]
    if name in module._buffers:
        return module._buffers[name]
    return module.__dict__[OWN + name]
