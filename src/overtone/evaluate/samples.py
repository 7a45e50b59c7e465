"""Frames of one trajectory, true and predicted, kept beside results for pictures and animations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from overtone.domain import Domain
from overtone.errors import DataError
from overtone.evaluate.results import storable
from overtone.files import replacing

SAMPLES = "samples.safetensors"


@dataclass(frozen=True, eq=False)
class Samples:
    """Some steps of a rollout of one trajectory.

    Attributes:
        domain: what the frames lie on.
        steps: which rollout steps, counted from 1.
        truth: `(S, C, *space)`, one frame for each of `steps`.
        predictions: name of the model, schedule -> `(S, C, *space)`; NaN after a blow-up.
    """

    domain: Domain
    steps: tuple[int, ...]
    truth: Tensor
    predictions: dict[tuple[str, str], Tensor]

    def save(self, path: str | Path) -> None:
        """Write a safetensors file; it is complete or absent."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        keys = list(self.predictions)
        tensors = {"truth": self.truth} | {
            f"prediction_{i}": self.predictions[key] for i, key in enumerate(keys)
        }
        about = {"domain": self.domain.to_dict(), "steps": self.steps, "keys": keys}
        text = json.dumps(storable(about), allow_nan=False)
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
        with replacing(path) as scratch:
            try:
                save_file(tensors, scratch, metadata={"about": text})
            except SafetensorError as error:  # the library's word for whatever the disk says
                raise DataError(
                    f"'{path}' can't be written: {error}; make room there, or choose another folder"
                ) from error

    @classmethod
    def load(cls, path: str | Path) -> Samples:
        """Read what `save` wrote."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="pt") as file:
                about = json.loads(file.metadata()["about"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            keys = [(model, schedule) for model, schedule in about["keys"]]
            predictions = {key: tensors[f"prediction_{i}"] for i, key in enumerate(keys)}
            domain, steps = Domain(**about["domain"]), tuple(about["steps"])
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"'{path}' can't be read as samples of an evaluation: {error}"
            ) from error
        return cls(domain, steps, tensors["truth"], predictions)
