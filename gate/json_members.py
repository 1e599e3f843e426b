"""Members of JSON objects that stand there twice: of which one was meant nobody knows, and libraries take the last.

Looked for by counting colons: each member has one outside of texts. A library that keeps the last of two members
writes fewer than it has read. Texts keep theirs, but for those that are written as an escape.
"""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from hopwatch.probes.http.problems import json_pointer

REPEATED_MEMBER: Final = "the member stands there twice: one of them was meant, and nobody knows which"
_ESCAPED: Final = b"\\u003"
"""A colon as an escape begins so."""


def may_have_repeats(data: bytes) -> bool:
    """Return whether a member may stand twice in JSON; False if surely none does."""
    if _ESCAPED in data:
        return True
    try:
        return orjson.dumps(orjson.loads(data)).count(b":") != data.count(b":")
    except (ValueError, TypeError):  # no JSON, or such that another library may read it still; nested too deep to write
        return True


def find_repeated_member(data: bytes) -> str | None:
    """Return a JSON pointer to the first member that stands twice in its object; None without one, or in no JSON."""
    try:
        way = _find_path(
            json.loads(data, object_pairs_hook=_JsonObject, parse_int=str, parse_float=str, parse_constant=str)
        )
    except (ValueError, RecursionError):
        return None
    return None if way is None else json_pointer(way[::-1])


class _JsonObject(list[tuple[str, Any]]):
    """An object, with all of its members."""


def _find_path(value: Any) -> list[int | str] | None:  # noqa: ANN401 - JSON
    """Return the way to the first member that stands twice, its last step first; only what holds others is entered."""
    seen = set()
    is_object = isinstance(value, _JsonObject)
    for step, one in value if is_object else enumerate(value if isinstance(value, list) else ()):
        if is_object and step in seen:
            return [step]
        if is_object:
            seen.add(step)
        if isinstance(one, list) and (way := _find_path(one)) is not None:
            way.append(step)
            return way
    return None
