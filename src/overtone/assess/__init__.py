"""What a model knows about its own error: estimates of a rollout, and plans for a budget.

The module itself can be called as its function `assess`: `ot.assess(model, window, …)` is what a
notebook writes, and the package's attribute of that name is this module as soon as it is loaded.
"""

import sys
from types import ModuleType
from typing import Any

from overtone.assess.assessment import Assessment, assess

__all__ = ["Assessment", "assess"]


class _Callable(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        return assess(*args, **options)


sys.modules[__name__].__class__ = _Callable
