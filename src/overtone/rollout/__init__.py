"""The autoregressive loop, who decides at each of its steps, and how far off a frame may be.

`loop` steps the model; `controllers` has the role of those that decide as they go, `adaptive` the
one that keeps a tolerance, `sparing` the one that looks now and then; `estimates` tells the error
of a frame without the truth.
"""

from overtone.rollout.adaptive import Adaptive
from overtone.rollout.controllers import Controller, Made, Rule, Task, parse_rule
from overtone.rollout.estimates import ErrorEstimate, parse_against
from overtone.rollout.loop import OnBlowUp, Rollout, Stepper, plan_objection, rollout
from overtone.rollout.sparing import Sparing

__all__ = [
    "Adaptive",
    "Controller",
    "ErrorEstimate",
    "Made",
    "OnBlowUp",
    "Rollout",
    "Rule",
    "Sparing",
    "Stepper",
    "Task",
    "parse_against",
    "parse_rule",
    "plan_objection",
    "rollout",
]
