"""Tests of rules against a schema: a rule that cannot work is reported."""

from __future__ import annotations

import pytest

from hopwatch.gate.rule_check import find_mismatches
from hopwatch.gate.rules import (
    Action,
    Enumeration,
    EventRule,
    FieldPath,
    Freshness,
    NumberRange,
    Pattern,
    Required,
    RuleCheck,
)
from tests.support.schemas import record, schema

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
NOT_THERE = "which the schema does not have: it blocks no event, or every one"


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (Required(FieldPath.parse("item")), []),
        (Required(FieldPath.parse("more.anything")), []),
        (NumberRange(FieldPath.parse("other.price"), 0, None), []),
        (NumberRange(FieldPath.parse("lines[].price"), 0, None), []),
        (NumberRange(FieldPath.parse("total"), 0, None), []),
        (Pattern(FieldPath.parse("item"), "x"), []),
        (Enumeration(FieldPath.parse("number"), (1,)), []),
        (Freshness(5), []),
        (NumberRange(FieldPath.parse("prcie"), 0, None), [f"the rule 'r' looks at prcie, {NOT_THERE}"]),
        (Required(FieldPath.parse("lines.price")), [f"the rule 'r' looks at lines.price, {NOT_THERE}"]),
        (Required(FieldPath.parse("item[].x")), [f"the rule 'r' looks at item[].x, {NOT_THERE}"]),
        (Pattern(FieldPath.parse("number"), "[0-9]+"), [
            "the rule 'r' looks at number, which is long and no text: every event breaks it"
        ]),
        (NumberRange(FieldPath.parse("lines[]"), 0, None), [
            "the rule 'r' looks at lines[], which is record and no number: every event breaks it"
        ]),
    ],
)  # fmt: skip
def test_a_rule_that_looks_where_nothing_is_is_told(check: RuleCheck, told: list[str]) -> None:
    """With what follows; through unions, arrays and maps."""
    assert list(find_mismatches([EventRule("r", check, Action.REJECT)], ORDER)) == told
