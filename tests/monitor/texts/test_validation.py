"""Tests of what is said of a value that a library refuses: plain, and the same in files and on the command line."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from hopwatch.monitor.texts import validation


class Colour(StrEnum):
    """Something of which there are few."""

    RED = "red"
    BLUE = "blue"


REFUSED: dict[str, tuple[Any, object]] = {
    "this is at least 1": (Annotated[int, Field(ge=1)], 0),
    "this is more than 1": (Annotated[int, Field(gt=1)], 1),
    "this is at most 0.5": (Annotated[float, Field(le=0.5)], 1),
    "this is less than 5": (Annotated[int, Field(lt=5)], 5),
    "this is a whole number": (int, 1.5),
    "this is a number": (float, "x"),
    "this is true or false": (bool, "x"),
    "this is a text": (str, 1),
    "this is a list": (list[str], 1),
    "this has at most 1 entries": (Annotated[list[int], Field(max_length=1)], [1, 2]),
    "this has at least 1 entries": (Annotated[list[int], Field(min_length=1)], []),
    "this is one of 'a' or 'b'": (Literal["a", "b"], "c"),
    "this is one of 'red' or 'blue'": (Colour, "green"),
}


@pytest.mark.parametrize(("told", "refused"), REFUSED.items())
def test_what_is_wrong_is_said_plainly(told: str, refused: tuple[Any, object]) -> None:
    """Of bounds, kinds, lengths and choices."""
    of, value = refused
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(of).validate_python(value)
    (details,) = raised.value.errors()
    assert validation.describe_error(details["type"], details.get("ctx", {}), details["msg"]) == told


def test_what_has_no_words_of_ours_has_those_of_the_library() -> None:
    """As a part of a sentence."""
    assert validation.describe_error("date_type", {}, "Input should be a valid date") == "input should be a valid date"
