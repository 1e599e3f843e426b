"""docker-compose.yml as Compose reads it: anchors merged by YAML, ``${NAME}`` put in from the environment."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import yaml

from tests.repository import ROOT

FILE: Final = ROOT / "docker-compose.yml"
Tree = dict[str, Any]

_VARIABLE: Final = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::(?P<sign>[-?])(?P<rest>[^}]*))?\})")


class MissingError(Exception):
    """A variable that the file asks for is not set."""


def raw() -> Tree:
    """Return the file, nothing put in for its variables; it is the caller's own, to be changed."""
    return read(FILE.read_text("utf-8"))


def read(text: str) -> Tree:
    """Return what a text of YAML says; it is the caller's own, to be changed."""
    tree: Tree = json.loads(_parsed(text))
    return tree


@cache
def _parsed(text: str) -> str:
    """Return what a text of YAML says, as JSON: a hundred times as fast to read again."""
    return json.dumps(yaml.safe_load(text))


def interpolated(tree: Tree, environ: Mapping[str, str]) -> Tree:
    """Return the file with its variables put in.

    Raises:
        MissingError: one that is asked for is not set; the message is that of the file.
    """

    def put_in(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return "$"
        if found["sign"] == "?" and not environ.get(name):
            raise MissingError(f"{name}: {found['rest']}")
        return environ.get(name) or (found["rest"] if found["sign"] == "-" else "")

    told: Tree = _mapped(tree, lambda text: _VARIABLE.sub(put_in, text))
    return told


def variables(tree: Tree) -> set[str]:
    """Return the names of the variables that the file puts in."""
    names: set[str] = set()

    def note(text: str) -> str:
        names.update(found["name"] for found in _VARIABLE.finditer(text) if found["name"])
        return text

    _mapped(tree, note)
    return names


def environment(service: Tree) -> dict[str, str]:
    """Return what a service finds in its environment by the file."""
    return {name: str(value) for name, value in service.get("environment", {}).items()}


def mounts(service: Tree) -> list[tuple[str, str, str]]:
    """Return source, target and mode of each mount."""
    split = [volume.split(":") for volume in service.get("volumes", [])]
    return [(parts[0], parts[1], parts[2] if len(parts) > 2 else "rw") for parts in split]


def _mapped(tree: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - a value of YAML
    match tree:
        case str():
            return change(tree)
        case dict():
            return {key: _mapped(value, change) for key, value in tree.items()}
        case list():
            return [_mapped(value, change) for value in tree]
        case _:
            return tree
