"""An optimizer that turns the momentum of every matrix into an orthogonal one: Muon.

With momentum M = U S V^T the step is U V^T: all directions of a matrix learn at the same pace, not
only those whose gradients are large. U V^T is approached by Newton and Schulz's iteration, a few
products of small matrices; those of all matrices of one shape are computed at once, since on a CPU
many small ones cost more than their arithmetic.

A step of U V^T has the size sqrt(rank / elements), one of AdamW about 0.2. Steps are scaled to that
size, so a learning rate means much the same for both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, overload

import torch
from torch import Tensor, nn

MOMENTUM = 0.95
SIZE = 0.2
"""Root mean square of a step's elements at a learning rate of 1: what AdamW's have in practice."""
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b and c of x -> a x + b x^3 + c x^5, which brings singular values near 1 in few rounds; they
end between 0.7 and 1.2, which is near enough for a step."""
ROUNDS = 5


class Muon(torch.optim.Optimizer):
    """Orthogonal steps for matrices, AdamW's for everything else.

    Args:
        matrices: weights; those of more axes are matrices of their first axis and all others.
        others: groups of the other parameters, as `torch.optim.AdamW` takes them.
        lr: learning rate of all.
        betas: AdamW's.
        weight_decay: of the matrices; the other groups have their own.
    """

    def __init__(
        self,
        matrices: Sequence[nn.Parameter],
        others: Sequence[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float],
        weight_decay: float,
        fused: bool | None = None,
    ):
        own = {"params": list(matrices), "weight_decay": weight_decay}
        rest = torch.optim.AdamW(others, lr=lr, betas=betas, fused=fused) if others else None
        super().__init__([own, *(rest.param_groups if rest else ())], {"lr": lr})
        self.rest = rest
        if rest is not None:
            # One state and one list of groups: whoever sets a rate sets it for both.
            rest.state, rest.param_groups = self.state, self.param_groups[1:]

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Make a step of all parameters that have a gradient."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        group = self.param_groups[0]
        alike: dict[tuple[int, ...], list[Tensor]] = defaultdict(list)
        for matrix in group["params"]:
            if matrix.grad is not None:
                alike[(*matrix.shape,)].append(matrix)
        for matrices in alike.values():
            self._step(matrices, lr=group["lr"], decay=group["weight_decay"])
        if self.rest is not None:
            self.rest.step()
        return loss

    def _step(self, matrices: list[Tensor], *, lr: float, decay: float) -> None:
        """A step of matrices of one shape."""
        averages = [self._momentum(matrix) for matrix in matrices]
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        torch._foreach_lerp_(averages, gradients, 1 - MOMENTUM)
        ahead = torch.stack(torch._foreach_lerp(gradients, averages, MOMENTUM)).flatten(2)
        step = orthogonal(ahead)
        scale = SIZE * max(step.shape[1:]) ** 0.5
        torch._foreach_mul_(matrices, 1 - lr * decay)
        shaped = step.reshape(len(matrices), *matrices[0].shape).unbind()
        torch._foreach_add_(matrices, shaped, alpha=-lr * scale)

    def _momentum(self, matrix: Tensor) -> Tensor:
        state = self.state[matrix]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(matrix)
        state["step"] += 1
        return state["exp_avg"]


def orthogonal(x: Tensor, rounds: int = ROUNDS) -> Tensor:
    """The nearest matrices with orthonormal rows or columns, approached.

    Args:
        x: `(n, rows, columns)`.
        rounds: of the iteration.
    """
    if x.shape[1] > x.shape[2]:
        return orthogonal(x.transpose(1, 2), rounds).transpose(1, 2)
    # All singular values at most 1; a matrix of zeros stays one.
    x = x / x.flatten(1).norm(dim=1).clamp(min=torch.finfo(x.dtype).tiny)[:, None, None]
    a, b, c = COEFFICIENTS
    # Every round multiplies from the left by a polynomial of x x^T, so all are made with these
    # small squares, and x itself is multiplied once.
    square, whole = x @ x.transpose(1, 2), None
    for turn in range(rounds):
        factor = torch.baddbmm(square, square, square, beta=b, alpha=c)
        factor.diagonal(dim1=1, dim2=2).add_(a)
        whole = factor if whole is None else factor @ whole
        if turn + 1 < rounds:
            square = factor @ square @ factor
    return x if whole is None else whole @ x
