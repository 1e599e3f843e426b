"""Error details of settings in the form of pydantic's own."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from hopwatch.monitor.settings.toml_lines import Key


def error_at(where: Key, got: object, message: str) -> InitErrorDetails:
    """Build an error for the value of a key."""
    kind = PydanticCustomError("value_error", "{error}", {"error": message})
    return InitErrorDetails(type=kind, loc=where, input=got)


def suggest_names(name: str, known: Sequence[str], more: str = "") -> str:
    """Return the end of a message about an unknown name: the nearest known name, and all of them."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0)
    suggestion = f"; did you mean {close[0]!r}?" if close else ":"
    return f"{suggestion} Known here: {', '.join(known) or 'none'}{more}"


def find_unknown_names(
    where: Key, said: Sequence[str], known: Sequence[str], what: str, more: str = ""
) -> Iterator[InitErrorDetails]:
    """Yield an error for each unknown name, at its place in a list, or its key in a table of labels."""
    for place, name in enumerate(said):
        if name not in known:
            message = f"there is no {what} {name!r:.80}{suggest_names(name, known, more)}"
            yield error_at((*where, name if what == "label" else place), name, message)


def build_error(title: str, found: Sequence[InitErrorDetails]) -> ValidationError:
    """Build the ValidationError of a table from its errors."""
    return ValidationError.from_exception_data(title, list(found))
