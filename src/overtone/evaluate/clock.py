"""How long model calls take, and nothing else.

On one core of a CPU what counts is the time that the core spends on the call, which does not
depend on what else the machine is doing. Elsewhere it is the time that passes.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from overtone.domain import Window
from overtone.rollout import Stepper
from overtone.schedules import Choice


def timed_call(model: Stepper, window: Window, choice: Choice) -> tuple[Tensor, float]:
    """The next frame `(B, C, *space)` and the seconds that it took.

    Args:
        model: what predicts.
        window: on the model's device.
        choice: patch and shift, for any number of axes.
    """
    choice = choice.on(window.domain)
    alone = window.fields.device.type == "cpu" and torch.get_num_threads() == 1
    now = time.thread_time if alone else time.perf_counter
    _wait(window.fields)
    began = now()
    with torch.no_grad():
        frame = model(window, choice.patch, choice.shift)
    _wait(window.fields)
    return frame, now() - began


def _wait(values: Tensor) -> None:
    """Until the device has done what it was given; the CPU has by the time it answers."""
    if values.device.type != "cpu":
        torch.accelerator.synchronize(values.device)
