"""Detection of repeated members in JSON objects: they are ambiguous, and libraries silently take the last.

They are detected by counting colons: each member has one outside of texts. A library that keeps the last of two members
writes fewer colons than it has read. Colons inside texts are kept, except those written as an escape.
"""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from hopwatch.probes.http.problems import json_pointer

REPEATED_MEMBER: Final = "the member is repeated: which of the two is meant is ambiguous"
_ESCAPED: Final = b"\\u003"
"""Beginning of a colon that is written as an escape."""


def may_have_repeats(data: bytes) -> bool:
    """Return whether JSON may have a repeated member; False only if it surely has none."""
    if _ESCAPED in data:
        return True
    try:
        return orjson.dumps(orjson.loads(data)).count(b":") != data.count(b":")
    except (ValueError, TypeError):  # not JSON for orjson, but perhaps for another library; or nested too deep to write
        return True


def find_repeated_member(data: bytes) -> str | None:
    """Return a JSON pointer to the first repeated member of an object; None without one, or if it is not JSON."""
    try:
        way = _find_path(
            json.loads(data, object_pairs_hook=_JsonObject, parse_int=str, parse_float=str, parse_constant=str)
        )
    except (ValueError, RecursionError):
        return None
    return None if way is None else json_pointer(way[::-1])


class _JsonObject(list[tuple[str, Any]]):
    """JSON object as the list of all its members."""


def _find_path(value: Any) -> list[int | str] | None:  # noqa: ANN401 - JSON
    """Return the path to the first repeated member, its last step first."""
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
