"""Programs that run a model without Overtone: ONNX, `torch.export` and AOTInductor.

The module itself can be called as its function `export`: `ot.export(model, "folder")`, see
`overtone.evaluate`, which does likewise.
"""

import sys
from types import ModuleType
from typing import Any

from overtone.export.run import export

__all__ = ["export"]


class _Callable(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        return export(*args, **options)


sys.modules[__name__].__class__ = _Callable
