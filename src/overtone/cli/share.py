"""The command `overtone push`: a model to a hub, where others load it by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overtone.errors import CheckpointError, refusal
from overtone.progress import Terminal


def push(
    model: Annotated[
        str,
        typer.Argument(
            help="A model's or a training run's folder, or the name of a packaged model."
        ),
    ],
    name: Annotated[str, typer.Argument(help="The repository, org/name; made if need be.")],
    private: Annotated[
        bool, typer.Option("--private", help="Let nobody else see a new repository.")
    ] = False,
    revision: Annotated[
        str | None, typer.Option(help="The branch to write to; made if need be.")
    ] = None,
    license: Annotated[
        str | None, typer.Option(help="For the card, e.g. mit; the card's own by default.")
    ] = None,
    card: Annotated[
        Path | None, typer.Option(help="Another card (Markdown) than that of the model's folder.")
    ] = None,
    message: Annotated[str | None, typer.Option(help="Of the commit.")] = None,
) -> None:
    """Write a model with its card to a repository on the hub (huggingface_hub; HF_TOKEN)."""
    from overtone.models.storage import load_model, locate_model

    console = Terminal()
    text = None if card is None else _read(card)
    located = locate_model(model)
    console.print(f"model {model} is {located.said}", soft_wrap=True)
    pushed = load_model(located.folder).push_to_hub(
        name,
        revision=revision,
        private=private or None,
        license=license,
        card=text,
        message=message,
    )
    console.print(f'wrote {pushed}; next: overtone.load("{pushed}")', soft_wrap=True)


def _read(card: Path) -> str:
    try:
        return card.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = refusal(error) or "it is no text in UTF-8"
        raise CheckpointError(f"the card '{card}' can't be read: {reason}") from error
