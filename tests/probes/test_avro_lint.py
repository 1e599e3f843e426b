"""Tests of the lint: what would harm a decoder is refused, with its place; what teams write is taken."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.avro_lint import MAX_DEPTH, LintError, lint
from hopwatch.probes.contract import envelope
from tests.probes.taps.avro_values import ORDER

NULLS = {"type": "record", "name": "R", "fields": [{"name": f"f{at}", "type": "null"} for at in range(100)]}

MANY = {"type": "record", "name": "R", "fields": [*NULLS["fields"], {"name": "last", "type": "int"}]}


def nested(depth: int, make: Any = lambda inner: {"type": "array", "items": inner}) -> Any:  # noqa: ANN401 - a schema
    """Return a type within a type within a type."""
    found: Any = "int"
    for _ in range(depth):
        found = make(found)
    return found


def doubling(depth: int) -> list[Any]:
    """Return a union of records, each of which has the one before twice."""
    records: list[Any] = [{"type": "record", "name": "R0", "fields": [{"name": "a", "type": "null"}]}]
    for at in range(1, depth):
        both = [{"name": name, "type": f"R{at - 1}"} for name in "ab"]
        records.append({"type": "record", "name": f"R{at}", "fields": both})
    return records


def chained(count: int) -> list[Any]:
    """Return a union of records, each of which has a list of the one before."""
    records: list[Any] = [{"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}]
    for at in range(1, count):
        field = {"name": "a", "type": {"type": "array", "items": f"R{at - 1}"}}
        records.append({"type": "record", "name": f"R{at}", "fields": [field]})
    return records


@pytest.mark.parametrize(
    ("schema", "place", "told"),
    [
        ({"type": "array", "items": "null"}, "", "an item of an array would have no bytes"),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, "", "an item of an array"),
        ({"type": "map", "values": NULLS}, "", "an item of a map would have no bytes: a few bytes would make millions"),
        ({"type": "map", "values": "null"}, "", "an item of a map would have no bytes"),
        ([{"type": "array", "items": MANY}], "/0", "an item of an array would be 102 objects of 1 bytes"),
        ({"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]},
         "/fields/0/type/1", "the type 'R' is part of itself"),
        ({"type": "record", "name": "a.R", "fields": [{"name": "next", "type": "R"}]},
         "/fields/0/type", "the type 'a.R' is part of itself"),
        (nested(MAX_DEPTH + 1), "/items" * (MAX_DEPTH + 1), f"it is nested deeper than {MAX_DEPTH}"),
        (doubling(30), "/11", "with its names written out it has 12285 parts, more than 10000"),
        (chained(40), "/16/fields/0/type", "with its names written out it is nested deeper than 32"),
        (["null"] * 101, "", "a union has 1 to 100 types, got 101"),
        ({"type": "error", "name": "E", "fields": []}, "/type", "there is no type 'error'"),
        ({"type": "record", "name": "R", "fields": [{"name": "a b", "type": "int"}]}, "/fields/0/name",
         "a name has letters, digits and underscores, got 'a b'"),
        ({"type": "enum", "name": "E\n", "symbols": ["A"]}, "/name", "a name has letters, digits and underscores"),
        ({"type": "enum", "name": "E", "symbols": ["A\n"]}, "/symbols/0", "a name has letters, digits"),
        ({"type": "enum", "name": "E"}, "/symbols", "names stand in a list, got None"),
        ({"type": "fixed", "name": "F", "size": 1, "aliases": 5}, "/aliases", "names stand in a list, got 5"),
        ({"type": "fixed", "name": "F", "size": 1, "aliases": [1]}, "/aliases/0", "a name has letters"),
        ({"type": "fixed", "name": "F", "size": 1, "namespace": ""}, "/namespace", "a name has letters"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "aliases": ["b.c"]}]},
         "/fields/0/aliases/0", "a name has letters"),
        ([], "", "a union has 1 to 100 types, got 0"),
        ("Order", "", "there is no type 'Order'"),
        ({}, "/type", "a type is a name, a union or an object, got None"),
        (7, "", "a type is a name, a union or an object, got 7"),
        ({"type": "record", "name": "R"}, "", "a record has fields, got None"),
        ({"type": "record", "name": "R", "fields": [7]}, "", "a record has fields, got [7]"),
        ({"type": "fixed", "name": "F", "size": -1}, "", "a fixed has a size, got -1"),
        ({"type": "record", "name": "error", "fields": []}, "/name", "'error' is a kind of type, and no name of one"),
        ({"type": "enum", "name": "E", "symbols": []}, "/symbols", "an enum without symbols has no values"),
        *(
            (
                {"type": "bytes", "logicalType": "decimal"} | said, "/precision",
                f"a decimal has a precision of 1 or more, and a scale from 0 to that, got {got}",
            )
            for said, got in (
                ({}, "None and 0"), ({"precision": 0}, "0 and 0"), ({"precision": 2, "scale": 3}, "2 and 3"),
                ({"precision": "x"}, "'x' and 0"), ({"precision": 2, "scale": -1}, "2 and -1"),
            )
        ),
        ({"type": "int", "logicalType": ["date"]}, "/logicalType", "a logical type is a name, got ['date']"),
    ],
)  # fmt: skip
def test_a_schema_that_may_do_harm_is_refused(schema: object, place: str, told: str) -> None:
    """The sentence says what is wrong, the pointer where."""
    with pytest.raises(LintError, match=re.escape(told)) as caught:
        lint(schema)
    assert caught.value.place == place


@pytest.mark.parametrize("schema", [ORDER, envelope.SCHEMA, nested(MAX_DEPTH - 1), ["null", "string"], doubling(10)])
def test_a_schema_as_teams_write_them_is_taken(schema: object) -> None:
    """Names used again, unions, maps, what is nested to a bound."""
    lint(schema)


JSON = st.recursive(
    st.sampled_from(["null", "int", "string", "R", "x", 7, None]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"type": st.just("map"), "values": inner}),
        st.fixed_dictionaries({"type": inner}),
        st.fixed_dictionaries({"type": st.just("fixed"), "name": st.just("R"), "size": st.integers(-1, 2)}),
        st.builds(
            lambda types: {"type": "record", "name": "R", "fields": [{"name": "f", "type": one} for one in types]},
            st.lists(inner, max_size=2),
        ),
    ),
)


@given(JSON)
def test_whatever_is_not_taken_is_refused_in_words(schema: object) -> None:
    """Any JSON is a schema or raises this error alone, with a pointer to a part of it."""
    told = refusal(schema)
    if told is None:
        return
    here: Any = schema
    for step in told.place.split("/")[1:]:
        here = here[int(step)] if isinstance(here, list) else here.get(step)
    assert str(told)


def refusal(schema: object) -> LintError | None:
    """Return why a schema is refused."""
    try:
        lint(schema)
    except LintError as error:
        return error
    return None
