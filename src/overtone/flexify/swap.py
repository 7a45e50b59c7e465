"""Changing what a module computes without changing what it is.

A module is made flexible by giving it a subclass of its own class, made on the spot. The subclass
replaces `forward`, or turns some attributes (parameters, buffers, stored sizes) into properties
that answer for the patch in use. The module keeps its identity, parameters, hooks and state dict;
`isinstance` still holds; `copy` and `pickle` work, as the subclass is made again from the original
class. At the base patch the original `forward` and the original attributes are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from torch import Tensor, nn

from overtone.acceptance import short_patch
from overtone.errors import OvertoneError
from overtone.flexify.patching import ATTACHED, Patching

Computation = Callable[[Any, Tensor, Patching], Tensor]
"""A module's forward at a patch other than its base."""

View = Callable[[Any, Patching], Any]
"""From an attribute's own value to its value at a patch other than the base."""


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
        self.__dict__[name] = value

    return property(get, put)


def _stored(module: nn.Module, name: str) -> Any:
    """An attribute as the module itself keeps it."""
    if name in module._parameters:
        return module._parameters[name]
    if name in module._buffers:
        return module._buffers[name]
    return module.__dict__[name]
