"""Types of an Avro protocol (``.avpr``), each as a schema that stands by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hopwatch.probes.avro_lint import LintError, full_name
from hopwatch.probes.avro_references import list_definitions, write_out_references


class ProtocolError(ValueError):
    """Protocol without types, or without the wanted one."""


def is_protocol(said: object) -> bool:
    """Return whether JSON is a protocol and not a schema."""
    return isinstance(said, dict) and "protocol" in said and "type" not in said


def list_types(said: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the types of a protocol, each with its namespace.

    Raises:
        ProtocolError: they are no list of named types.
    """
    types, space = said.get("types"), said.get("namespace")
    if not isinstance(types, list) or not all(isinstance(one, dict) and "name" in one for one in types):
        raise ProtocolError("the types of a protocol are a list of named types")
    if not isinstance(space, str):
        return list(types)
    return [one if "." in str(one["name"]) or "namespace" in one else {**one, "namespace": space} for one in types]


def select_type(said: dict[str, Any], name: str | None, others: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - JSON
    """Return a type of a protocol, with all that it uses; without a name the one that no other type uses.

    ``others`` are schemas of other files that it may use, too.

    Raises:
        ProtocolError: there is no such type, or several that no other uses.
        LintError: it is nested too deep.
    """
    types = list_types(said)
    named = {full_name(one, ""): one for one in types}
    known = [*types, *others]
    if name is None:
        used = [_list_used(one, known) for one in types]
        found = [one for at, one in enumerate(named) if not any(one in of for to, of in enumerate(used) if to != at)]
    else:
        found = [one for one in named if name in {one, one.rpartition(".")[2]}]
    if len(found) == 1:
        return write_out_references(named[found[0]], known)
    if not found:
        raise ProtocolError(f"the protocol has no type {name}, it has {', '.join(named)}" if name else "it has no type")
    told = f"the protocol has several types that none other uses: {', '.join(found)}"
    raise ProtocolError(f"{told}: name one with --type")


def _list_used(one: dict[str, Any], types: Sequence[Any]) -> set[str]:
    """Return the full names of the types that a type uses, its own among them."""
    try:
        return {name for name, _ in list_definitions(write_out_references(one, types))}
    except LintError:
        return set()
