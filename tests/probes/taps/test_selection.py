"""Tests of a topic of many types: each tap takes its own, and what may be its own is never passed over."""

from __future__ import annotations

from typing import Any

import fastavro.schema
import pytest

from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.taps.avro import SchemaWaitError, WriterSchema
from hopwatch.probes.taps.documents import SkippedMessage, StampableMessage
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.taps.messages import FieldSource, MessageField, MessageReader
from hopwatch.probes.taps.registry_schemas import RegistrySchemas
from hopwatch.probes.taps.selection import parse_selection
from hopwatch.probes.taps.unknown_schemas import UnknownSchema
from hopwatch.probes.values import SkipReason
from hopwatch.testing import EPOCH_US
from tests.probes.taps.avro_values import ORDER, body
from tests.probes.taps.value_messages import FRAMED, LATER, MARKED, RENAMED, SEEN, SEEN_IN_VALUE, Record, Source
from tests.support.tap_bench import Place

OTHER: Any = {"type": "record", "name": "Refund", "namespace": "shop", "fields": [{"name": "id", "type": "int"}]}
FIRST, LAST, REFUND = FRAMED[7] + body(), FRAMED[8] + body(LATER, RENAMED), FRAMED[9] + body({"id": 1}, OTHER)


def reader(take: str, *, in_value: bool = False, **more: Any) -> MessageReader:  # noqa: ANN401 - of the schemas
    """Return a reader of one type of a topic, whose ids and times stand in headers or in values."""
    schemas = RegistrySchemas(Source(n7=ORDER, n8=RENAMED, n9=OTHER), Place().around, **more)
    selection = parse_selection(take)
    if in_value:
        spots = MessageField(FieldSource.AVRO, "id"), MessageField(FieldSource.AVRO, "at")
        return MessageReader(*spots, avro=schemas, selection=selection)
    return MessageReader(avro=None if take.startswith("header") else schemas, selection=selection)


def test_messages_of_one_type_are_taken_in_all_versions() -> None:
    """By its full name, whether id and time stand in the value or beside it; a schema alone by its fingerprint."""
    canonical = fastavro.schema.to_parsing_canonical_form(fastavro.parse_schema(RENAMED))
    fingerprint = str(fastavro.schema.fingerprint(canonical, "SHA-256"))
    assert WriterSchema(RENAMED).fingerprint == fingerprint
    for in_value, seen in ((False, SEEN), (True, SEEN_IN_VALUE)):
        for take, expected in (
            ("type:shop.Order", [seen._replace(schema="orders/7"), seen._replace(schema="orders/8"), None]),
            (f"schema:{fingerprint}", [None, seen._replace(schema="orders/8"), None]),
            ("type:Order", [None] * 3),
        ):  # fmt: skip
            read = reader(take, in_value=in_value)
            assert [read.read(Record(value, MARKED)) for value in (FIRST, LAST, REFUND)] == expected


def test_what_may_be_of_the_type_counts_as_bad_or_waits() -> None:
    """Though its id and its time could be read: to pass over it could be a loss that nobody sees."""
    read = reader("type:shop.Order")
    for value, reason in (
        (b"\0\0\0\0\x63x", SkipReason.UNKNOWN_SCHEMA), (b"{}", SkipReason.UNDECODABLE), (None, SkipReason.NO_VALUE),
    ):  # fmt: skip
        assert read.read(Record(value, MARKED)) == SkippedMessage(reason, EPOCH_US)
    with pytest.raises(SchemaWaitError):
        reader("type:shop.Order", unknown=UnknownSchema.HOLD).read(Record(b"\0\0\0\0\x63x", MARKED))


def test_messages_may_be_told_by_a_header() -> None:
    """The last of its name; a message whose headers cannot be read may be one of them."""
    read = reader("header:kind=a=b")
    for headers, expected in (
        ([*MARKED, ("kind", b"a=b")], SEEN), ([("kind", "x"), *MARKED, ("kind", "a=b")], SEEN),
        (MARKED, None), ([*MARKED, ("kind", b"a")], None), ([*MARKED, ("kind", None)], None), (None, None),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), SkippedMessage(SkipReason.UNDECODABLE)),
    ):  # fmt: skip
        assert read.read(Record(b"", headers)) == expected
    in_json = MessageReader(MessageField(FieldSource.JSON, "id"), selection=parse_selection("header:kind=a"))
    marked = [MARKED[1], ("kind", b"a")]
    assert in_json.read(Record(b'{"id": "a"}', marked)) == StampableMessage(id_bytes("a"), EPOCH_US)
    assert in_json.read(Record(b"{", MARKED)) is None


@pytest.mark.parametrize("text", ["", "type:", "schema:12", "header:a", "header:=b", "kind:a", "Type:a"])
def test_a_selection_is_one(text: str) -> None:
    """Or the forms are told."""
    with pytest.raises(TapUsageError, match=r"--take is type:NAME, schema:FINGERPRINT .* or header:NAME=VALUE, got "):
        parse_selection(text)


def test_a_type_needs_schemas() -> None:
    """And is none of JSON's."""
    selection = parse_selection("type:a")
    for spots in ((), (MessageField(FieldSource.JSON, "id"),)):
        with pytest.raises(TapUsageError, match="--avro-schema or --registry go with --id-avro, --time-avro or --take"):
            MessageReader(*spots, selection=selection)
