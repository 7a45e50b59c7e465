"""Where a page's numbers come from: `RESULTS/STUDY.json`, and what is chosen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overtone.errors import DataError, suggest
from overtone.evaluate.results import ModelResult, Results
from overtone.report.series import Series, model_names, series
from studies.archive import Archive
from studies.catalogue import STUDIES
from studies.page.blocks import PageError

Options = Mapping[str, tuple[str, ...]]
"""Name of an option -> its items."""


@dataclass(frozen=True)
class Source:
    """The numbers of one comparison.

    Attributes:
        name: the comparison's.
        results: its numbers.
        plan: the plan that it followed, as its file has it; None without.
        forms: what the study's archive says of the forms of its models.
    """

    name: str
    results: Results
    plan: Mapping[str, Any] | None = None
    forms: Mapping[str, Any] = field(default_factory=dict)

    def models(self, wanted: Sequence[str] | None = None) -> list[str]:
        """Names of all models, or of those wanted, in the order in which they are wanted."""
        known = model_names(self.results)
        for name in wanted or ():
            if name not in known:
                raise PageError(
                    f"'{self.name}' has no model '{name}'{suggest(name, known)}; there are "
                    f"{'; '.join(known)}"
                )
        return known if wanted is None else list(wanted)

    def seeds(self, model: str) -> list[ModelResult]:
        """A model, once for each seed."""
        self.models([model])
        return [m for m in self.results.models if m.name == model]

    def chosen(self, options: Options) -> list[Series]:
        """Rollouts of the options `models` and `schedules`, in their order; all by default.

        A model is shown with those of the schedules that it followed.
        """
        models = self.models(options.get("models"))
        found = {(s.model, s.schedule): s for s in series(self.results)}
        known = list(dict.fromkeys(name for model, name in found if model in models))
        wanted = options.get("schedules", tuple(known))
        for name in wanted:
            if name not in known:
                raise PageError(
                    f"no model of '{self.name}' that is asked for followed schedule '{name}'; "
                    f"there are {', '.join(known) or 'none'}"
                )
        pairs = [(model, name) for model in models for name in wanted]
        return [found[pair] for pair in pairs if pair in found]

    def split(self, operand: str) -> tuple[str, str]:
        """Model, and what is behind its colon; both may have colons themselves."""
        for name in sorted(self.models(None), key=len, reverse=True):
            if operand == name or operand.startswith(f"{name}:"):
                return name, operand[len(name) + 1 :]
        model, _, rest = operand.partition(":")
        return model, rest

    def rollout(self, operand: str) -> Series:
        """A rollout by `MODEL:SCHEDULE`."""
        model, schedule = self.split(operand)
        own = self.chosen({"models": (model,)})
        for s in own:
            if s.schedule == schedule:
                return s
        raise PageError(
            f"'{self.name}' has no rollout '{operand}'; expected {model}:SCHEDULE with one of "
            f"{', '.join(s.schedule for s in own) or 'none'}"
        )


class Library:
    """The results of a folder, each file read once."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise DataError(f"there is no folder of results '{self.folder}'; give --results")
        self._read: dict[str, dict[str, Source]] = {}

    def source(self, name: str) -> Source | None:
        """A comparison's numbers, or None if it was not run yet."""
        study = study_of(name)
        path = self.folder / f"{study}.json"
        if study not in self._read and path.exists():
            found = Archive.load(path)
            self._read[study] = {
                key: Source(key, results, found.plans.get(key), found.forms)
                for key, results in found.comparisons.items()
            }
        return self._read.get(study, {}).get(name)


def study_of(comparison: str) -> str:
    """Name of the study that makes a comparison."""
    known = {c.name: study.name for study in STUDIES.values() for c in study.comparisons}
    if comparison not in known:
        raise PageError(
            f"no study makes a comparison '{comparison}'{suggest(comparison, list(known))}; there "
            f"are {', '.join(known)}"
        )
    return known[comparison]


def single(options: Options, name: str) -> str:
    """The one item of an option."""
    items = options[name]
    if len(items) != 1:
        raise PageError(f"{name} is {','.join(items)}; expected one")
    return items[0]
