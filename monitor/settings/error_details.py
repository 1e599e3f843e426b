"""What of the settings does not fit together, as problems that stand beside pydantic's own."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from hopwatch.monitor.settings.toml_lines import Key


def error_at(where: Key, got: object, message: str) -> InitErrorDetails:
    """Return one thing that is wrong, at the place of a key."""
    kind = PydanticCustomError("value_error", "{error}", {"error": message})
    return InitErrorDetails(type=kind, loc=where, input=got)


def suggest_names(name: str, known: Sequence[str], more: str = "") -> str:
    """Return what is known instead of a name, the nearest first."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0)
    suggestion = f"; did you mean {close[0]!r}?" if close else ":"
    return f"{suggestion} Known here: {', '.join(known) or 'none'}{more}"


def find_unknown_names(
    where: Key, said: Sequence[str], known: Sequence[str], what: str, more: str = ""
) -> Iterator[InitErrorDetails]:
    """Yield a problem for each name that is not known, at its place in a list, or its key in a table of labels."""
    for place, name in enumerate(said):
        if name not in known:
            message = f"there is no {what} {name!r:.80}{suggest_names(name, known, more)}"
            yield error_at((*where, name if what == "label" else place), name, message)


def build_error(title: str, found: Sequence[InitErrorDetails]) -> ValidationError:
    """Return what to raise of problems that were found in a table of this name."""
    return ValidationError.from_exception_data(title, list(found))
