"""Many processes: who this one is, and how a model is spread over all of them.

Everything is applied to the model from outside. `torchrun` starts the processes and tells each its
rank; without it there is one rank and nothing here does anything.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from overtone.errors import ConfigError
from overtone.train.config import ParallelConfig
from overtone.train.objective import Predict

TIMEOUT = timedelta(minutes=10)
"""How long the ranks wait for one that does not answer."""


@dataclass(frozen=True)
class Ranks:
    """This process among all.

    Attributes:
        rank, world: which of how many.
        device: where it computes.
    """

    rank: int
    world: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes files and talks."""
        return self.rank == 0

    def largest(self, values: list[float]) -> list[float]:
        """Each value's maximum over all ranks."""
        return self._reduce(values, dist.ReduceOp.MAX)

    def total(self, values: list[float]) -> list[float]:
        """Each value's sum over all ranks."""
        return self._reduce(values, dist.ReduceOp.SUM)

    def gather(self, text: str) -> list[str]:
        """Every rank's text, in order of rank."""
        if self.world == 1:
            return [text]
        own = torch.tensor(list(text.encode()), dtype=torch.uint8, device=self.device)
        length = int(self.largest([float(len(own))])[0])
        padded = torch.zeros(length, dtype=torch.uint8, device=self.device)
        padded[: len(own)] = own
        found = [torch.empty_like(padded) for _ in range(self.world)]
        dist.all_gather(found, padded)
        return [bytes(part.tolist()).rstrip(b"\0").decode(errors="replace") for part in found]

    def require_alike(self, values: Mapping[str, Any], advice: str) -> None:
        """Refuse, on all ranks with the same words, what differs between them.

        Args:
            values: plain data by name, of this rank.
            advice: what to do about it.
        """
        first, *others = (json.loads(text) for text in self.gather(json.dumps(values)))
        differing = [
            f"{name} is {first.get(name)} on rank 0 and {other.get(name)} on rank {rank}"
            for rank, other in enumerate(others, start=1)
            for name in first | other
            if first.get(name) != other.get(name)
        ]
        if differing:
            raise ConfigError(f"the ranks are not of one run: {'; '.join(differing)}. {advice}")

    def wait(self) -> None:
        """Until all ranks are here."""
        if self.world > 1:
            dist.barrier()

    def _reduce(self, values: list[float], operation: Any) -> list[float]:
        if self.world == 1:
            return values
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor, operation)
        return tensor.tolist()


@contextmanager
def ranks(device: str = "auto") -> Iterator[Ranks]:
    """Join the other processes that `torchrun` started, if any, and leave them at the end."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    rank, local = int(os.environ.get("RANK", "0")), int(os.environ.get("LOCAL_RANK", "0"))
    chosen = _device(device, local)
    if world == 1:
        yield Ranks(0, 1, chosen)
        return
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    _join("nccl" if chosen.type == "cuda" else "gloo", rank, world)
    try:
        yield Ranks(rank, world, chosen)
        dist.barrier()  # without it a rank that leaves early may abort the others
    finally:
        # A wrapped model that outlives its group ends the group's threads while it holds the
        # interpreter, for which they may be waiting.
        gc.collect()
        dist.destroy_process_group()


def _join(backend: str, rank: int, world: int) -> None:
    """Meet the other ranks under a name of this attempt's own.

    torchrun keeps its store when it restarts the ranks, addresses of the dead ones included; they
    would be called, and waited for, in vain.
    """
    store, _, _ = next(dist.rendezvous("env://", timeout=TIMEOUT))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    own = dist.PrefixStore(f"attempt-{attempt}", store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=world, timeout=TIMEOUT)


def _device(name: str, local: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(f"cuda:{local}" if name == "cuda" else name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(
            f"train.device is {name!r}, which can't be used here: {error}. `overtone info` lists "
            "what there is"
        ) from error
    return device


class DistributedModel:
    """A model as this rank trains it.

    Args:
        model: has `predict_change`, on this rank's device.
        config: strategy.
        ranks: this process among all.
        compile: whether to compile its blocks.
    """

    def __init__(self, model: nn.Module, config: ParallelConfig, ranks: Ranks, *, compile: bool):
        self.model, self.ranks = model, ranks
        self.sharded = ranks.world > 1 and config.strategy != "ddp"
        self._wrapper: nn.Module | None = None
        if compile:
            _compile(model)
        if self.sharded:
            _shard(model, config, ranks)
        elif ranks.world > 1:
            ids = [ranks.device] if ranks.device.type == "cuda" else None
            self._wrapper = nn.parallel.DistributedDataParallel(_Entry(model), device_ids=ids)

    @property
    def predict(self) -> Predict:
        """`predict_change` with gradients that are averaged over the ranks."""
        model: Any = self.model
        return model.predict_change if self._wrapper is None else self._wrapper

    @contextmanager
    def gradients(self, *, last: bool) -> Iterator[None]:
        """Around a backward pass; only the last one of an update exchanges gradients."""
        if isinstance(self._wrapper, nn.parallel.DistributedDataParallel) and not last:
            with self._wrapper.no_sync():
                yield
            return
        if self.sharded:
            model: Any = self.model
            model.set_requires_gradient_sync(last)
        yield

    def full_weights(self) -> dict[str, Tensor]:
        """The whole model's weights on every rank's CPU; all ranks must ask."""
        return {name: whole(tensor) for name, tensor in self.model.state_dict().items()}


class _Entry(nn.Module):
    """Gives `predict_change` to DDP, which knows `forward` only."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *args: Any, **options: Any) -> Any:
        model: Any = self.model
        return model.predict_change(*args, **options)


def whole(tensor: Tensor) -> Tensor:
    """A tensor that may be spread over ranks, in one piece."""
    from torch.distributed.tensor import DTensor

    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach()


def _shard(model: nn.Module, config: ParallelConfig, ranks: Ranks) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    kind, world = ranks.device.type, ranks.world
    if config.strategy == "fsdp":
        mesh = init_device_mesh(kind, (world,), mesh_dim_names=("shard",))
    else:
        share = config.shard or int(os.environ.get("LOCAL_WORLD_SIZE", world))
        if world % share:
            raise ConfigError(
                f"parallel.shard is {share}; it must divide the number of ranks, {world}"
            )
        names = ("replicate", "shard")
        mesh = init_device_mesh(kind, (world // share, share), mesh_dim_names=names)
    for block in _blocks(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    # The root gathers its own weights whichever of its methods is called.
    register_fsdp_forward_method(model, "predict_change")


def _compile(model: nn.Module) -> None:
    """Compile block by block: blocks see tokens alone, so a shift needs no new graph."""
    blocks = _blocks(model)
    for block in blocks or [model]:
        block.compile()
    # One graph for each patch, in training and in validation, for all frames and for the last one.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 64)


def _blocks(model: nn.Module) -> list[nn.Module]:
    """The parts that are gathered one at a time: members of the module list that weighs most."""
    lists = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    return list(max(lists, key=_weight)) if lists else []


def _weight(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())
