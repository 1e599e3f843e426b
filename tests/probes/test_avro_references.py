"""Tests of schemas with references: written out, they say what a schema of one text would."""

from __future__ import annotations

from typing import Any

import fastavro.schema
import pytest
from hypothesis import given

from hopwatch.probes.avro_lint import LintError, full_name, lint
from hopwatch.probes.avro_references import MAX_NESTING, write_out_references
from tests.support.schemas import SCHEMAS

CODE = {"type": "fixed", "name": "Code", "size": 3}
MONEY = {"type": "record", "name": "Money", "namespace": "com.shop", "fields": [
    {"name": "amount", "type": "string"}, {"name": "currency", "type": CODE}]}  # fmt: skip
LINE = {"type": "record", "name": "com.shop.Line", "fields": [{"name": "price", "type": "Money"}]}


def take_apart(schema: Any, found: list[Any], *, is_outermost: bool = True) -> Any:  # noqa: ANN401 - JSON
    """Return a schema whose named types are names, and put them among those found, innermost first."""
    if isinstance(schema, list):
        return [take_apart(one, found, is_outermost=False) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    for name in ("items", "values"):
        if name in made:
            made[name] = take_apart(made[name], found, is_outermost=False)
    if "fields" in made:
        made["fields"] = [{**one, "type": take_apart(one["type"], found, is_outermost=False)} for one in made["fields"]]
    if "name" not in made or is_outermost:
        return made
    found.append(made)
    return full_name(made, "")


@given(SCHEMAS)
def test_a_schema_that_was_taken_apart_is_the_same_again(schema: Any) -> None:  # noqa: ANN401 - JSON
    """Bytes of one are bytes of the other, whatever the order of the parts."""
    for turn in (1, -1):
        parts: list[Any] = []
        main = take_apart(schema, parts)
        whole = write_out_references(main, parts[::turn])
        lint(whole)
        canonical = fastavro.schema.to_parsing_canonical_form
        assert canonical(fastavro.parse_schema(whole)) == canonical(fastavro.parse_schema(schema))


def test_a_type_is_defined_where_its_name_first_stands() -> None:
    """In full, with what it uses itself; later it is a name again, also where its definition stands in another one."""
    order = {"type": "record", "name": "Order", "namespace": "com.shop", "fields": [
        {"name": "code", "type": "Code"}, {"name": "lines", "type": {"type": "array", "items": "com.shop.Line"}},
        {"name": "total", "type": ["null", {"type": "map", "values": "Money"}]}]}  # fmt: skip
    whole = write_out_references(order, [LINE, MONEY])
    lint(whole)
    parsed: Any = fastavro.parse_schema(whole)
    assert sorted(parsed["__named_schemas"]) == [f"com.shop.{name}" for name in ("Code", "Line", "Money", "Order")]
    assert whole["fields"][0]["type"]["name"] == "Code"
    assert whole["fields"][1]["type"]["items"]["fields"][0]["type"]["fields"][1]["type"] == "com.shop.Code"
    assert whole["fields"][2]["type"][1]["values"] == "Money"


def test_what_nobody_defines_is_left_to_the_lint() -> None:
    """The lint names it; so it does a type that is part of itself by way of others."""
    with pytest.raises(LintError, match=r"there is no type 'com\.shop\.Price'"):
        lint(write_out_references({**LINE, "fields": [{"name": "price", "type": "Price"}]}, [MONEY]))
    loop = {"type": "record", "name": "com.shop.Money", "fields": [{"name": "line", "type": "Line"}]}
    with pytest.raises(LintError, match=r"the type 'com\.shop\.Line' is part of itself"):
        lint(write_out_references(LINE, [loop]))


def test_what_is_no_schema_raises_nothing_else() -> None:
    """Parts of any form stay as they are."""
    odd: Any
    for odd in (None, 7, {}, {"type": {}}, {"type": "record", "name": "A", "fields": [7]}, {"fields": 3}, ["X", 4]):
        assert write_out_references(odd, [odd, MONEY]) is not Ellipsis


def test_a_schema_that_is_nested_past_all_sense_is_refused() -> None:
    """As one that is referred to, too."""
    deep: Any = "int"
    for _ in range(MAX_NESTING + 1):
        deep = {"type": "array", "items": deep}
    for main, parts in ((deep, []), ("int", [deep])):
        with pytest.raises(LintError, match=f"it is nested deeper than {MAX_NESTING}"):
            write_out_references(main, parts)
