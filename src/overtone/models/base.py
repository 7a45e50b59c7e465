"""The face that all models share: a call in three steps, and a folder on disk.

A call accepts the window, lays the patch grid, and computes the change that follows:

    frame = last frame + unit · change(window, grid).

`Emulator`, `CViT`, the baselines and flexified models differ in `change` and in what they are
rebuilt from. All accept windows that fit the domain they were built for and patches they know
(`accept_window`, `accept_patch`); some are stricter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from overtone.domain import Domain, PerAxis, Sides, Window, per_axis, require_window
from overtone.errors import CheckpointError, DomainError, OvertoneError, PatchError
from overtone.grid import PatchGrid
from overtone.guard.names import shown
from overtone.models.architecture import require_sizes
from overtone.models.calibration import Calibration, load_calibration
from overtone.models.storage import find_model, load_folder, load_weights, save_folder
from overtone.normalize import Statistics, statistics
from overtone.schedules import Patch


class Model(nn.Module, ABC):
    """Predicts the next frame of a window.

    Args:
        domain: what it is built for.
        context: largest number of frames it looks back on.
        patches: those it is trained for, one int for each axis.
        causal: whether every frame of a window makes a prediction of its own, or only the last.

    Attributes:
        domain, context, causal: as given.
        patches: as given, each written as short as possible.
        pace: how much of its standard deviation each field usually changes by in a step, `(C,)`,
            see `normalize`. Training measures it; until then it is 0.
        scale: the standard deviation that each field usually has, `(C,)`; likewise.
        source: the folder that its weights were read from, if they were.
        digest: SHA-256 of the weights' file that it was read from; empty if it was not.
    """

    kind: ClassVar[str]
    """What folders and results call it."""
    patched: ClassVar[bool] = True
    """Whether it has patches. If not, it accepts any patch and shift and ignores them."""

    def __init__(
        self,
        domain: Domain,
        context: int,
        *,
        patches: tuple[tuple[int, ...], ...],
        causal: bool = False,
    ):
        super().__init__()
        require_sizes({"context": context})
        self.domain = domain
        self.context = context
        self.causal = causal
        self.patches: tuple[Patch, ...] = tuple(short_patch(patch) for patch in patches)
        self._trained = patches
        self.source: Path | None = None
        self.pace: Tensor
        self.register_buffer("pace", torch.zeros(len(domain.fields)))
        self.scale: Tensor
        self.register_buffer("scale", torch.zeros(len(domain.fields)))
        self._calibration: Calibration | None = None
        self._folder: Path | None = None
        self.digest = ""

    @property
    def num_parameters(self) -> int:
        """Number of trainable real numbers; a complex one counts as two."""
        return sum(p.numel() * (2 if p.is_complex() else 1) for p in self.parameters())

    @property
    def calibration(self) -> Calibration | None:
        """What turns disagreements of its patches into errors, as `overtone calibrate` measured it.

        It is read from the model's folder when it is first asked for. Training makes it None.

        Raises:
            CheckpointError: it can't be read, or was measured with other weights.
        """
        if self._folder is not None:
            self._calibration = load_calibration(self._folder, self.digest)
            self._folder = None
        return self._calibration

    @calibration.setter
    def calibration(self, value: Calibration | None) -> None:
        self._calibration, self._folder = value, None

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Every number that defines it, plain data."""

    @abstractmethod
    def change(
        self, window: Window, grid: PatchGrid, *, last_only: bool
    ) -> tuple[Tensor, Statistics]:
        """Compute what `predict_change` returns, for a window and a patch that were accepted."""

    def forward(
        self,
        window: Window,
        patch: PerAxis | None = None,
        shift: PerAxis = 0,
        *,
        allow_untrained: bool = False,
        check_finite: bool = True,
    ) -> Tensor:
        """Predict the next frame.

        Args:
            window: fields `(B, T, C, *space)` in physical units; of more than `context` frames
                the latest are used.
            patch: cells of a token, one int or one for each axis. It may be left out where the
                model has one patch, or none.
            shift: cells by which the patch grid is moved, one int or one for each axis.
            allow_untrained: accept a patch that the model was not trained for.
            check_finite: refuse NaN and infinity; without it they spread. In training the loss
                tells, and nothing is refused.

        Returns:
            `(B, C, *space)` in physical units.
        """
        accepted = self.accept_call(
            window, patch, shift, allow_untrained, check_finite=check_finite
        )
        return self.next_frame(*accepted)

    def predict_change(
        self,
        window: Window,
        patch: PerAxis | None = None,
        shift: PerAxis = 0,
        *,
        last_only: bool = False,
        allow_untrained: bool = False,
    ) -> tuple[Tensor, Statistics]:
        """Predict the change that follows each frame, in the statistics' unit.

        This is what training compares with `Statistics.change_between`. Arguments are those of
        `forward`; with `last_only`, and if the model is not `causal`, T is 1.

        Returns:
            Changes `(B, T, C, *space)`, and the statistics that give them their units.
        """
        window, grid = self.accept_call(window, patch, shift, allow_untrained)
        return self.change(window, grid, last_only=last_only)

    def next_frame(self, window: Window, grid: PatchGrid) -> Tensor:
        """Compute what `forward` returns, for a window and a patch that were accepted."""
        change, stats = self.change(window, grid, last_only=True)
        return stats.add_change(window.fields[:, -1:], change)[:, 0]

    def measure(self, fields: Tensor, *, causal: bool) -> Statistics:
        """Statistics of a window's fields `(B, T, C, *space)`, by the model's pace and scale."""
        return statistics(fields, pace=self.pace, scale=self.scale, causal=causal)

    def accept_call(
        self,
        window: Window,
        patch: PerAxis | None,
        shift: PerAxis,
        allow_untrained: bool,
        *,
        check_finite: bool = True,
    ) -> tuple[Window, PatchGrid]:
        """The frames that are used, and the patch grid on them."""
        require_window(window, self.domain)
        window = self.accept(window, check_finite=check_finite)
        if patch is None:
            if len(self.patches) != 1:
                known = ", ".join(map(str, self.patches))
                raise PatchError(f"no patch was given; this model knows {known}: choose one")
            (patch,) = self.patches
        return window, self.lay(window.domain, patch, shift, allow_untrained)

    def accept(self, window: Window, *, check_finite: bool = True) -> Window:
        """Check a window against the model and cut it to the context."""
        check_finite = check_finite and not self.training
        return accept_window(
            window, domain=self.domain, context=self.context, check_finite=check_finite
        )

    def lay(
        self, domain: Domain, patch: PerAxis, shift: PerAxis, allow_untrained: bool
    ) -> PatchGrid:
        """Check a patch against the model and lay its grid on a domain."""
        return accept_patch(
            patch, shift, domain=domain, trained=self._trained, allow_untrained=allow_untrained
        )

    def checkpoint_activations(self, enabled: bool = True) -> None:
        """Recompute blocks in the backward pass instead of keeping what they computed.

        Without effect on models that are not made of blocks of their own.
        """

    def save(
        self,
        path: str | Path,
        *,
        training: Mapping[str, Any] | None = None,
        weights: Mapping[str, Tensor] | None = None,
        card: str | None = None,
        carry: bool = False,
    ) -> None:
        """Write a folder with weights (safetensors) and configuration (JSON).

        Args:
            path: the folder.
            training: how it was trained (seed, updates, …), plain data to keep beside it.
            weights: other weights than its own, e.g. gathered ones of a model spread over ranks.
            card: what it is and how well it does, in Markdown, to be the folder's README.md.
            carry: what to do with files that somebody else put into an older model's folder: take
                them along, or refuse to replace it.
        """
        content = self.blueprint() | {"training": dict(training or {})}
        # What was measured with these weights does not hold for others.
        calibration = self.calibration if weights is None else None
        weights = self.state_dict() if weights is None else weights
        save_folder(path, weights, content, card=card, carry=carry, calibration=calibration)

    def push_to_hub(
        self,
        name: str,
        *,
        revision: str | None = None,
        private: bool | None = None,
        license: str | None = None,
        card: str | None = None,
        message: str | None = None,
        token: str | None = None,
    ) -> str:
        """Write it to a repository on the hub, which is made if it is not there.

        Weights and configuration go there as `save` writes them, with a card. The card, the record
        of the training and the training's log are those of the folder that the model was read from
        if its weights are still the same; else the card says what the model itself tells.

        Args:
            name: `org/name`, or `org/name@branch`.
            revision: the branch to write to, made if it is not there.
            private: whether others may not see it; as it is, or as the account has it, if None.
            license: for the card's head, e.g. `"mit"`; the card's own, or `"unknown"`, if None.
            card: another card than this, in Markdown.
            message: of the commit.
            token: of the account; the one that is logged in if None.

        Returns:
            `org/name@commit`, by which exactly this model can be loaded.
        """
        from overtone.models.sharing import push

        return push(
            self,
            name,
            revision=revision,
            private=private,
            license=license,
            card=card,
            message=message,
            token=token,
        )

    @classmethod
    def from_pretrained(
        cls, path: str | Path, *, revision: str | None = None, sha256: str | None = None
    ) -> Self:
        """Read a model of this kind by the name of a packaged one, a folder, or a repository.

        The model is in evaluation mode.

        Args:
            path: the name of a model that comes with the package, a folder that `save` wrote, or a
                repository on the hub, `org/name` or `org/name@revision`; see `overtone.load`.
            revision: branch, tag or commit of a repository; the default branch if None.
            sha256: what the SHA-256 of `model.safetensors` must be, in hexadecimal. The checksum
                that is stored beside the weights finds damage, not tampering; this one finds both.
        """
        folder = find_model(path, revision=revision)
        return cls.restore(*load_folder(folder, sha256=sha256), folder)

    @classmethod
    def restore(
        cls, weights: Mapping[str, Tensor], config: Mapping[str, Any], path: str | Path
    ) -> Self:
        """Build a model from what `load_folder` read in a folder."""
        try:
            model = cls.rebuild(config)
        except CheckpointError:
            raise
        # What is in a file may be of any type, and torch refuses some of it in its own words.
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError,
                MemoryError) as error:  # fmt: skip
            kind = "" if isinstance(error, OvertoneError) else f"{type(error).__name__}: "
            raise CheckpointError(
                f"the configuration of '{path}' does not fit: {kind}{shown(error)[:500]}"
            ) from error
        load_weights(model, weights, path)
        model.source = model._folder = Path(path)
        model.digest = str(config.get("sha256", ""))
        return model.eval()

    def blueprint(self) -> dict[str, Any]:
        """What `rebuild` needs, plain data: the model's part of a folder's configuration."""
        return {"kind": self.kind, "architecture": self.config}

    @classmethod
    @abstractmethod
    def rebuild(cls, config: Mapping[str, Any]) -> Self:
        """An untrained model by a folder's configuration."""


def accept_window(window: Window, *, domain: Domain, context: int, check_finite: bool) -> Window:
    """Check a window against a model and cut it to the model's context.

    Args:
        window: fields `(B, T, C, *space)`.
        domain: what the model was built for; the window may have another number of cells.
        context: largest number of frames it looks back on.
        check_finite: refuse NaN and infinity. A compiled graph never does: it would have to wait.
    """
    given = window.domain
    if not window.batched:
        raise DomainError(
            f"the window has shape {tuple(window.fields.shape)} without a batch axis; "
            "expected (B, T, C, *space): use fields.unsqueeze(0)"
        )
    if given.ndim != domain.ndim:
        raise DomainError(f"the window is {given.ndim}D, the model was built for {domain.ndim}D")
    if given.fields != domain.fields:
        raise DomainError(
            f"the window has the fields {given.fields}, the model was built for {domain.fields}; "
            "select and order them alike"
        )
    require_boundaries(given, domain)
    if not domain.steps_by(given.dt):
        known = " to ".join(map(str, dict.fromkeys(domain.dt_range)))
        raise DomainError(f"the window's dt is {given.dt}, the model steps by {known}")
    needed = min(2, context)
    if window.num_frames < needed:
        raise DomainError(
            f"the window has {window.num_frames} frames; the model needs at least {needed} to "
            f"see a change, and was built for {context}"
        )
    window = window.last(context)
    if check_finite and not torch.compiler.is_compiling():
        window.require_finite()
    return window


def require_boundaries(given: Domain, domain: Domain) -> None:
    """Refuse a window with other boundaries than a model's, at any side.

    A model of walls would run on a periodic window, too, and give frames: wrong ones, since it has
    learned what walls do.

    Args:
        given: what the window lies on.
        domain: what the model was built for.
    """
    differ = [
        f"axis {axis} is {_sides(there)}, the model's is {_sides(own)}"
        for axis, (there, own) in enumerate(zip(given.boundaries, domain.boundaries, strict=True))
        if there != own
    ]
    if differ:
        raise DomainError(
            f"the window has other boundaries than the model was built for: {'; '.join(differ)}. "
            "Give it windows with its own boundaries, or train a model for these"
        )


def _sides(pair: Sides) -> str:
    """The two sides of an axis, e.g. `wall`, or `wall/open` if they differ."""
    return "/".join(dict.fromkeys(map(str, pair)))


def accept_patch(
    patch: int | Sequence[int],
    shift: int | Sequence[int],
    *,
    domain: Domain,
    trained: tuple[tuple[int, ...], ...],
    allow_untrained: bool,
) -> PatchGrid:
    """The patch grid of a call.

    Args:
        patch, shift: one int, or one for each axis.
        domain: what the window lies on.
        trained: the patches that the model knows.
        allow_untrained: accept others, too.
    """
    sizes = per_axis(patch, domain.ndim, "patch")
    if sizes not in trained and not allow_untrained:
        known = ", ".join(str(short_patch(known)) for known in trained)
        raise PatchError(
            f"patch {short_patch(sizes)} was not trained for; this model knows {known}. "
            "allow_untrained=True, or --allow-untrained, tries it anyway"
        )
    return PatchGrid.lay(domain, sizes, shift)


def short_patch(patch: tuple[int, ...]) -> Patch:
    """A patch written as short as possible: one int if all axes have the same."""
    return patch[0] if len(set(patch)) == 1 else patch
