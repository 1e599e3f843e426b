"""Tests of rules against a schema: what cannot do what it is for is told."""

from __future__ import annotations

import pytest

from hopwatch.gate.fitting import misfits
from hopwatch.gate.rules import Action, Check, Enumeration, Freshness, Path, Pattern, Range, Required, Rule
from tests.gate.registry.schemas import record, schema

LINE = record({"name": "price", "type": "double"}, name="Line")
ORDER = schema(
    record(
        {"name": "item", "type": ["null", "string"]},
        {"name": "number", "type": "long"},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "more", "type": {"type": "map", "values": "string"}},
        {"name": "other", "type": ["null", "Line"]},
    )
)
NOT_THERE = "which the schema has not: it keeps no event out, or every one"


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (Required(Path.parse("item")), []),
        (Required(Path.parse("more.anything")), []),
        (Range(Path.parse("other.price"), 0, None), []),
        (Range(Path.parse("lines[].price"), 0, None), []),
        (Range(Path.parse("total"), 0, None), []),
        (Pattern(Path.parse("item"), "x"), []),
        (Enumeration(Path.parse("number"), (1,)), []),
        (Freshness(5), []),
        (Range(Path.parse("prcie"), 0, None), [f"the rule 'r' looks at prcie, {NOT_THERE}"]),
        (Required(Path.parse("lines.price")), [f"the rule 'r' looks at lines.price, {NOT_THERE}"]),
        (Required(Path.parse("item[].x")), [f"the rule 'r' looks at item[].x, {NOT_THERE}"]),
        (Pattern(Path.parse("number"), "[0-9]+"), [
            "the rule 'r' looks at number, which is long and no text: every event breaks it"
        ]),
        (Range(Path.parse("lines[]"), 0, None), [
            "the rule 'r' looks at lines[], which is record and no number: every event breaks it"
        ]),
    ],
)  # fmt: skip
def test_a_rule_that_looks_where_nothing_is_is_told(check: Check, told: list[str]) -> None:
    """With what follows; through unions, arrays and maps."""
    assert list(misfits([Rule("r", check, Action.REJECT)], ORDER)) == told
