"""Model cards: what a model is, how to load it, what it was made for, as Markdown with a YAML head.

A card is composed of sections. Those that a model itself can fill are here; a training adds its
data, cost and errors (`train.card`), a study its evaluation. What comes from files or users stands
in the text as text: no markup, no line of its own, no second column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from overtone.domain import Domain
from overtone.errors import CheckpointError
from overtone.guard.names import shown
from overtone.hub import CARD
from overtone.models.base import Model
from overtone.models.storage import load_with_config, locate_model
from overtone.schedules import Patch

UNKNOWN = "unknown"
"""The licence of what nobody has given one."""
LICENSE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}")
"""Identifiers of licences as the hub has them."""
TOKENIZERS = {
    "csm": "one kernel, variable stride",
    "ckm": "one kernel, resized",
    "fixed": "one patch",
}
VRMSE = (
    "VRMSE is the root mean square error of a field over its spatial standard deviation in the "
    "truth, mean over fields, steps and trajectories; 1 is as bad as predicting the mean. Brackets "
    "are 95 % bootstrap intervals over the trajectories."
)
LIMITS = """## Limits

It is made for the fields, boundaries and time steps that are listed above, and for dynamics like
those that it was trained on: other parameters are a guess. Rollouts lose small scales and gather
errors, the longer the more. Predictions obey no conservation law by construction. Errors are those
of the data that is named with them, and of no other."""


def compose(name: str, about: str, sections: Sequence[str], *, license: str = UNKNOWN) -> str:
    """The text of a card.

    Args:
        name: the model's.
        about: what it is, in a sentence or two.
        sections: Markdown, in the order of the page.
        license: its identifier, as the hub has it.
    """
    head = f"""---
license: {require_license(license)}
library_name: overtone
tags: [pde, surrogate, emulator, physics]
metrics: [vrmse]
---
# {text(name)}

{about}"""
    return "\n\n".join((head, *sections)) + "\n"


def model_card(model: Model, name: str) -> str:
    """The card of a model of which no more is known than what it is.

    Args:
        model: the model.
        name: what it is loaded by.
    """
    about = f"An emulator of {fields(model.domain)}: {makeup(model)}."
    made_for = "## Made for\n\n" + table(("", ""), domain_rows(model.domain))
    unknown = "## Accuracy\n\nNothing is recorded of its training, and no errors were measured."
    return compose(name, about, (use(name, model), made_for, unknown, LIMITS))


def describe(name: str) -> dict[str, str]:
    """Names and values for `overtone info MODEL`, in the order to print them.

    Args:
        name: as for `load_model`.
    """
    located = locate_model(name)
    model, config = load_with_config(located.folder)
    rows = {"model": f"{name} is {located.said}", "made of": makeup(model)}
    rows |= dict(domain_rows(model.domain))
    training: Any = config.get("training")
    for key in ("recipe", "seed", "updates", "minutes", "flops"):
        if isinstance(training, Mapping) and key in training:
            rows[f"training: {key}"] = shown(training[key])
    rows["weights"] = f"SHA-256 {shown(config.get('sha256'))}"
    rows["card"] = str(located.folder / CARD) if (located.folder / CARD).is_file() else "none"
    return rows


def makeup(model: Model) -> str:
    """What a model consists of: its parts, patches, context and number of parameters."""
    config = {"kind": model.kind, **model.config}
    return makeup_of(config, model.patches, model.context, model.num_parameters)


def makeup_of(
    config: Mapping[str, Any], patches: Sequence[Patch], context: int, num_parameters: int
) -> str:
    """The same by its configuration, with its kind among it."""
    tokenizer = str(config.get("tokenizer", ""))
    known = f" ({TOKENIZERS[tokenizer]})" if tokenizer in TOKENIZERS else ""
    kinds = {
        "emulator": f"processor `{config.get('processor')}`, tokenizer `{tokenizer}`{known}",
        "cvit": f"a CViT, tokenizer `{tokenizer}`{known}",
        "baseline": f"the baseline `{text(config.get('name'))}`",
        "flexible": f"`{text(config.get('model'))}`, made flexible",
    }
    listed = ", ".join(map(str, patches))
    kind = str(config.get("kind"))
    return (
        f"{kinds.get(kind, text(kind))}, patches {listed}, context {context} frames, "
        f"{num_parameters:,} parameters"
    )


def use(name: str, model: Model) -> str:
    """How to load a model by a name, and to predict."""
    if model.kind == "flexible":
        return (
            "Its own code builds it: build the model, flexify it, and give the weights in "
            "`model.safetensors` to `load_state_dict` of its `ot.FlexibleStepper`."
        )
    return usage(name, "-".join(map(str, model.patches)) if model.patched else "1")


def usage(name: str, schedule: str) -> str:
    """The lines of Python that load a model by a name and predict by a schedule."""
    return f"""```python
import overtone as ot

model = ot.load("{text(name)}")
frames = ot.rollout(model, window, steps=40, schedule="{schedule}")
```"""


def domain_rows(domain: Domain) -> list[tuple[str, str]]:
    """Rows of a table: fields, grid, boundaries and time step."""
    walls = "; ".join(f"axis {i}: {low}/{high}" for i, (low, high) in enumerate(domain.boundaries))
    extent = " x ".join(f"{length:g}" for length in domain.extent)
    return [
        ("fields", ", ".join(map(text, domain.fields))),
        ("grid, extent", f"{cells(domain.shape)}, {extent}"),
        ("boundaries (low/high)", walls),
        ("time between frames", f"{domain.dt:g}"),
    ]


def fields(domain: Domain) -> str:
    """The fields of a domain, each as code."""
    return ", ".join(f"`{text(name)}`" for name in domain.fields)


def cells(shape: Sequence[int] | None) -> str:
    """A grid, e.g. `64x64`."""
    return "x".join(map(str, shape or ()))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text(value: object) -> str:
    """What came from elsewhere, as it may stand in a card: one line without markup."""
    return re.sub(r"[`|<>\[\]\"*]", "_", shown(value))


def require_license(license: str) -> str:
    """The same identifier, if it can be one."""
    if not LICENSE.fullmatch(license):
        raise CheckpointError(
            f"license is '{shown(license)[:80]}'; expected an identifier such as mit, apache-2.0 "
            "or cc-by-4.0"
        )
    return license


def readdressed(card: str, name: str, license: str | None = None) -> str:
    """A card under another name: its title, the line that loads the model, and its licence.

    Lines that somebody has written otherwise stay as they are.

    Args:
        card: the text.
        name: what the model is loaded by from now on.
        license: another licence; the card's own if None.
    """
    name = text(name)
    card = re.sub(r"^# .*$", lambda _: f"# {name}", card, count=1, flags=re.MULTILINE)
    loads = r"(ot\.(?:load|Emulator\.from_pretrained)\()\"[^\"]*\""
    card = re.sub(loads, lambda found: f'{found[1]}"{name}"', card)
    if license is not None:
        line = f"license: {require_license(license)}"
        head = re.match(r"---\n.*?\n---\n", card, flags=re.DOTALL)
        if head is None:
            return f"---\n{line}\nlibrary_name: overtone\n---\n{card}"
        new, count = re.subn(r"^license:.*$", line, head[0], count=1, flags=re.MULTILINE)
        card = (new if count else f"---\n{line}\n{head[0][4:]}") + card[head.end() :]
    return card
