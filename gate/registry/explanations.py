"""Explanations of conflicts in words: the field, the version, what would break, and the fix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from hopwatch.gate.registry.breaks import Break, BreakKind
from hopwatch.gate.registry.compatibility import Conflict, Direction

WHOLE_SCHEMA: Final = "the schema itself"
_MAJOR: Final = re.compile(r"(?P<stem>.*)\.v(?P<major>[1-9][0-9]{0,8})")


class ConflictExplanation(NamedTuple):
    """Explanation of one break between a new schema and a version."""

    version: int
    direction: Direction
    place: str
    """Such as ``customer.address[].zip``."""
    problem: str
    breaks: str
    """The reads that would fail."""
    fix: str


def explain_conflicts(conflicts: Sequence[Conflict]) -> Iterator[ConflictExplanation]:
    """Yield an explanation for each break, by version and place."""
    for conflict in conflicts:
        is_backward = conflict.direction is Direction.BACKWARD
        old = f"version {conflict.version}"
        broken = (
            f"readers with the new schema could not read what {old} wrote"
            if is_backward
            else f"readers of {old} could not read what the new schema writes"
        )
        for one in conflict.breaks:
            problem, fix = _explain_break(one, old, is_backward=is_backward)
            yield ConflictExplanation(
                conflict.version, conflict.direction, one.place or WHOLE_SCHEMA, problem, broken, fix
            )


def describe_new_major(name: str) -> str:
    """Return the advice to make a type with this full name a new major version."""
    namespace = name.rpartition(".")[0]
    found = _MAJOR.fullmatch(namespace)
    following = f"{found['stem']}.v{int(found['major']) + 1}" if found else f"{namespace or 'com.example.orders'}.v2"
    such = f"the namespace {following}" if namespace else f"a namespace such as {following}"
    return f"make it a new major version: {such}, and a subject of its own"


def _explain_break(one: Break, old: str, *, is_backward: bool) -> tuple[str, str]:  # noqa: C901, PLR0911 - a table in words
    """Return the problem and the fix."""
    before, now = (one.writer, one.reader) if is_backward else (one.reader, one.writer)
    changed = f"{before} in {old}, {now} in the new schema"
    match one.kind, is_backward:
        case BreakKind.NO_DEFAULT, True:
            return f"the field is new, of type {now}, and has no default", "give it a default"
        case BreakKind.NO_DEFAULT, False:
            return f"the field is gone, and {old} has no default for it", "keep the field"
        case BreakKind.TYPE, True:
            wider = "widen it (int, long, float, double; string and bytes)"
            return changed, f"keep the type, {wider}, or add a field of another name, with a default, beside it"
        case BreakKind.TYPE, False:
            return changed, "keep the type, or add a field of another name beside it"
        case BreakKind.NAME, True:
            return changed, f"keep the name, or add {before} to the aliases of {now}"
        case BreakKind.NAME, False:
            return changed, "keep the name"
        case BreakKind.SIZE, _:
            return f"{before} bytes in {old}, {now} in the new schema", "keep the size, or add a field of another name"
        case BreakKind.SYMBOLS, True:
            told = f"the symbols {before} of {old} are gone, and the enum has no default"
            return told, "keep them, or give the enum a default for symbols that it does not know"
        case BreakKind.SYMBOLS, False:
            told = f"the symbols {now} are new, and the enum of {old} has no default"
            return told, "do without them, or add the enum's default in a version before they are written"
        case BreakKind.BRANCH, True:
            return f"{before} in {old} has no place in {now}", "take the type of before into the union"
        case _:
            return f"{now} in the new schema has no place in {before} of {old}", "keep to the types of before"
