"""Messages for invalid values: the error kinds of pydantic in our own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_WORDS: Final = {
    "greater_than_equal": "this is at least {ge}",
    "greater_than": "this is more than {gt}",
    "less_than_equal": "this is at most {le}",
    "less_than": "this is less than {lt}",
    "int_parsing": "this is a whole number",
    "int_type": "this is a whole number",
    "int_from_float": "this is a whole number",
    "float_parsing": "this is a number",
    "float_type": "this is a number",
    "finite_number": "this is a number",
    "bool_parsing": "this is true or false",
    "bool_type": "this is true or false",
    "string_type": "this is a text",
    "list_type": "this is a list",
    "tuple_type": "this is a list",
    "too_long": "this has at most {max_length} entries",
    "too_short": "this has at least {min_length} entries",
    "literal_error": "this is one of {expected}",
    "enum": "this is one of {expected}",
}


def describe_error(kind: str, context: Mapping[str, Any], otherwise: str) -> str:
    """Return the words for a kind of error of pydantic's; ``otherwise`` is what the library says itself."""
    if kind not in _WORDS:
        return f"{otherwise[:1].lower()}{otherwise[1:]}"
    # A bound is written as a person would, 1 and not 1.0.
    whole = {name: int(of) if isinstance(of, float) and of.is_integer() else of for name, of in context.items()}
    return _WORDS[kind].format_map(whole)
