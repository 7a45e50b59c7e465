"""Models x data x schedules -> results: errors, artifacts, physics and costs, as plain data.

The module itself can be called as its function `evaluate`: `ot.evaluate(model, data)` is what a
notebook writes, and the package's attribute of that name is this module as soon as it is loaded.
"""

import sys
from types import ModuleType
from typing import Any

from overtone.evaluate.candidates import Candidate, Evaluable, load_candidate
from overtone.evaluate.predictions import Predictions, write_predictions
from overtone.evaluate.run import evaluate
from overtone.evaluate.trajectories import Reading, Trajectories

__all__ = [
    "Candidate",
    "Evaluable",
    "Predictions",
    "Reading",
    "Trajectories",
    "evaluate",
    "load_candidate",
    "write_predictions",
]


class _Callable(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        return evaluate(*args, **options)


sys.modules[__name__].__class__ = _Callable
