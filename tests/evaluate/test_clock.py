import time

import torch

import overtone as ot
from overtone.evaluate.clock import timed_call


def test_the_call_alone_is_timed(toy_domain):
    seen = {}

    class Slow:
        context = 2

        def __call__(self, window, patch, shift=0):
            seen.update(patch=patch, shift=shift, grad=torch.is_grad_enabled())
            time.sleep(0.05)
            return window.fields[:, -1]

    window = ot.Window(torch.zeros(3, 2, 2, 16, 32), toy_domain)
    frame, seconds = timed_call(Slow(), window, ot.parse_schedule("4+shift:at:1x2")(0))
    assert frame.shape == (3, 2, 16, 32)
    assert 0.05 <= seconds < 1.0
    assert seen == {"patch": (4, 4), "shift": (1, 2), "grad": False}
