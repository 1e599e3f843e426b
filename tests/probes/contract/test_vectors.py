"""The golden vectors are what this reader and the slow one make of them, and what their generator writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.model import record as slow
from tests.probes.contract import vectors

LINES: list[dict[str, Any]] = [json.loads(line) for line in vectors.PATH.read_text("ascii").splitlines()]


def test_the_generator_writes_the_file_that_is_here() -> None:
    """To the byte: a change of the wire, or of what is written of it, shows."""
    assert vectors.PATH.read_text("ascii") == vectors.write_vectors()


def test_there_are_enough_of_each_kind() -> None:
    """200 at least, good and bad ones, of both versions, no two of one name, and every reason among them."""
    good = [line for line in LINES if "fields" in line]
    assert len({line["name"] for line in LINES}) == len(LINES) >= 200
    assert {line["version"] for line in good} == {1, 2}
    assert min(len(good), len(LINES) - len(good)) >= 80
    assert {line["error"] for line in LINES if "error" in line} == {
        *("bad_count", "bad_length", "bad_marker", "bad_name", "bad_value"),
        *("malformed", "trailing_bytes", "truncated", "unknown_schema"),
    }


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["name"])
def test_two_readers_agree_with_a_vector(line: dict[str, Any]) -> None:
    """The product's reader gives the fields or the error; the model's reads it or refuses it, too."""
    record = bytes.fromhex(line["record"])
    told = vectors.describe(record)
    assert json.loads(json.dumps(told)) == {name: line[name] for name in line if name not in {"name", "record"}}
    if "error" in line:
        with pytest.raises(slow.RecordError):
            slow.decode(record)
    else:
        assert slow.decode(record).seq == line["fields"]["seq"]
