"""Settings as people give them: dotted keys, `key=value` pairs, YAML files, and those of a run.

What comes in is bounded and plain data, what comes out a valid `RunConfig`, or one message that
names each mistake with its key and what was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml
from pydantic import ValidationError

from overtone.errors import ConfigError, suggest
from overtone.guard.names import shown
from overtone.models.processors import PROCESSORS
from overtone.train.config import RunConfig, Section

MAX_BYTES = 100_000
"""Longest text with settings; the longest that we write has 2,000."""
MAX_NODES = 10_000
"""Most values in such a text."""
MAX_DEPTH = 20
"""How deeply they may be nested."""
MAX_SHOWN = 80
"""Longest value that is repeated in a message."""
OPEN = ("data.generate.settings.", "model.other.")
"""Sections whose keys are known to others only."""


def change(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """A configuration with some dotted keys set to other values.

    Args:
        config: what to start from.
        changes: dotted key -> value; a value may be a whole section.
    """
    plain = config.model_dump()
    known = keys()
    for key, value in changes.items():
        *sections, last = key.split(".")
        if key not in known and not key.startswith(OPEN):
            raise ConfigError(
                f"there is no setting {_given(key)}{suggest(key, known)}; `overtone train RECIPE "
                "--show` lists them all"
            )
        target = plain
        for section in sections:
            if target.get(section) is None:
                target[section] = {}
            target = target[section]
            if not isinstance(target, dict):
                raise ConfigError(
                    f"'{key}' is to be {_given(value)}, but '{section}' is {_given(target)} and "
                    "has no settings of its own; give one of the two"
                )
        target[last] = value
    return _validate(plain)


def parse_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """`["train.batch=8", "model.patches=[4, 8]"]` as a mapping; values are YAML."""
    changes = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(
                f"{_given(pair)} is not a setting; expected key=value, e.g. train.batch=8"
            )
        changes[key.strip()] = _scalar(value, key)
    return changes


def read_file(path: str | Path) -> dict[str, Any]:
    """Dotted keys and values of a YAML file."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_BYTES + 1).decode()
    except OSError as error:
        raise ConfigError(f"the configuration '{path}' can't be read: {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"'{path}' is not YAML: {error}") from error
    content = _parse(text, f"'{path}' is not YAML")
    if not isinstance(content, dict):
        raise ConfigError(f"'{path}' holds {type(content).__name__}; expected sections with keys")
    return dict(_flatten(content))


def load_config(path: str | Path) -> RunConfig:
    """The configuration that a run wrote beside itself."""
    try:
        return _modern(RunConfig.model_validate_json(Path(path).read_bytes()))
    except OSError as error:
        raise ConfigError(f"'{path}' can't be read: {error}") from error
    except ValidationError as error:
        raise ConfigError(f"'{path}' is not a run's configuration: {_explain(error)}") from error


def _modern(config: RunConfig) -> RunConfig:
    """What the settings of a run mean that an older version wrote.

    First emulators all attended; then models knew no scale.
    """
    model = config.model
    if "scale" not in model.model_fields_set:
        model = model.model_copy(update={"scale": "context"})
        config = config.model_copy(update={"model": model})
    if "time" in model.model_fields_set:
        return config
    attends = model.name in PROCESSORS
    meant = {
        "time": "attend" if attends else model.time,
        "causal": False if attends and model.causal is False else None,
    }
    return config.model_copy(update={"model": model.model_copy(update=meant)})


def keys(kind: type[Section] = RunConfig, prefix: str = "") -> list[str]:
    """Every dotted key."""
    found: list[str] = []
    hints = get_type_hints(kind)
    for name in kind.model_fields:
        inner = [t for t in (hints[name], *get_args(hints[name])) if _is_section(t)]
        found += keys(inner[0], f"{prefix}{name}.") if inner else [prefix + name]
    return found


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def _flatten(content: Mapping[str, Any], prefix: str = "") -> Any:
    known = keys()
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name not in known:
            yield from _flatten(value, f"{name}.")
        elif value is not None or name in known:
            yield name, value


def _scalar(text: str, key: str) -> Any:
    value = _parse(text, f"{_given(key)} is to be {_given(text)}: the value is not YAML")
    if isinstance(value, str):
        try:
            return float(value)  # YAML 1.1 reads 1e-4 as text
        except ValueError:
            return value
    return value


class _Loader(yaml.SafeLoader):
    """Reads plain data of bounded size: what JSON can hold, without references."""

    yaml_constructors = {  # noqa: RUF012 - as yaml has it
        tag: construct
        for tag, construct in yaml.SafeLoader.yaml_constructors.items()
        if tag is None
        or tag.rpartition(":")[2] in ("null", "bool", "int", "float", "str", "seq", "map")
    }
    # A date is a text.
    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [entry for entry in entries if not entry[0].endswith(":timestamp")]
        for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    nodes = depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("a value is repeated by reference (*name); write it out")
        self.nodes, self.depth = self.nodes + 1, self.depth + 1
        if self.nodes > MAX_NODES or self.depth > MAX_DEPTH:
            raise yaml.YAMLError(
                f"it has more than {MAX_NODES:,} values, or more than {MAX_DEPTH} within each other"
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _parse(text: str, complaint: str) -> Any:
    """What a YAML text says.

    Args:
        text: from a file or the command line.
        complaint: how an error begins.
    """
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{complaint} of settings: it is longer than {MAX_BYTES:,} characters")
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe one
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a number of too many digits
        raise ConfigError(f"{complaint}: {error}") from error


def _validate(plain: Mapping[str, Any]) -> RunConfig:
    try:
        return RunConfig.model_validate(plain)
    except ValidationError as error:
        raise ConfigError(_explain(error)) from error


def _explain(error: ValidationError) -> str:
    """Each mistake once, with its key and what was given."""
    lines: dict[str, str] = {}
    for entry in error.errors():
        # Members of a union and positions in a tuple are not part of the key.
        key = ".".join(p for p in entry["loc"] if isinstance(p, str) and p.isidentifier())
        message = entry["msg"].removeprefix("Value error, ")
        if key:
            given = (
                "" if isinstance(entry["input"], dict) else f" (given: {_given(entry['input'])})"
            )
            message = f"{key}: {message}{given}"
        lines.setdefault(key or message, message)
    return "; ".join(lines.values())


def _given(value: Any) -> str:
    """A value as it is repeated in a message: not too long of it."""
    try:
        text = shown(repr(value))
    except ValueError:  # a whole number that Python won't write
        return "a number of too many digits"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
