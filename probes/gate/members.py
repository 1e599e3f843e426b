"""Members of JSON objects that stand there twice: of which one was meant nobody knows, and libraries take the last.

Looked for by counting colons: each member has one outside of texts. A library that keeps the last of two members
writes fewer than it has read. Texts keep theirs, but for those that are written as an escape.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import orjson

from probes.http.problems import pointer

TOLD: Final = "the member stands there twice: one of them was meant, and nobody knows which"
_ESCAPED: Final = b"\\u003"
"""A colon as an escape begins so."""


def may_repeat(data: bytes) -> bool:
    """Return whether a member may stand twice in JSON; False if surely none does."""
    if _ESCAPED in data:
        return True
    try:
        return orjson.dumps(orjson.loads(data)).count(b":") != data.count(b":")
    except ValueError:  # no JSON, or such that another library may read it still
        return True


def repeated(data: bytes) -> str | None:
    """Return a JSON pointer to the first member that stands twice in its object; None without one, or in no JSON."""
    try:
        found = json.loads(data, object_pairs_hook=_Members, parse_int=str, parse_float=str, parse_constant=str)
        return next((pointer(way) for way in _repeated(found, ())), None)
    except (ValueError, RecursionError):
        return None


class _Members(list[tuple[str, Any]]):
    """An object, with all of its members."""


def _repeated(value: Any, way: tuple[int | str, ...]) -> Iterator[tuple[int | str, ...]]:  # noqa: ANN401 - JSON
    if isinstance(value, _Members):
        seen = set()
        for name, one in value:
            if name in seen:
                yield (*way, name)
            seen.add(name)
            yield from _repeated(one, (*way, name))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _repeated(one, (*way, number))
