"""Tests of the events of the bench: they fit their schema, and no id comes twice."""

from __future__ import annotations

import json
import time

import orjson

from bench.gate import bare_gate, orders
from bench.peers.plain_app import PlainOrder
from hopwatch.gate import codec_cache, ids, request_bodies
from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.avro_schema import Schema

SCHEMA = Schema.parse(orjson.dumps(orders.SCHEMA))


def test_orders_fit_the_schema_and_the_model() -> None:
    """Orders have the same value for the gate as for the plain app."""
    codec = Codec(SCHEMA)
    for number in range(12):
        data = orders.encode_order(number)
        assert (
            codec.decode(codec.encode(data))
            == PlainOrder.model_validate_json(data).model_dump()
            == orders.order(number)
        )


def test_ids_are_new_and_of_now() -> None:
    """UUIDs of version 7, which know the millisecond, each of them once."""
    before_us = time.time_ns() // 1_000_000 * 1_000
    read = [ids.parse_uuid(one) for one in orders.ids(1_000)]
    after_us = time.time_ns() // 1_000
    assert len(set(read)) == 1_000
    assert {ids.uuid_version(one) for one in read} == {7}
    assert all(before_us <= (ids.uuid_time_us(one) or 0) <= after_us for one in read)


def test_a_batch_is_what_the_gate_takes_apart() -> None:
    """A hundred events, each with an id; the next batch has other orders."""
    sent = request_bodies.parse_batch(orders.encode_batch(0))
    assert len(sent) == orders.BATCH
    assert not any(one.faults for one in sent)
    assert [json.loads(one.data) for one in sent] == [orders.order(number) for number in range(orders.BATCH)]
    assert json.loads(request_bodies.parse_batch(orders.encode_batch(1))[0].data) == orders.order(orders.BATCH)


def test_without_validation_bytes_are_written_as_they_came() -> None:
    """Behind the same 33 bytes; even what is no JSON."""
    codec = bare_gate.BareCodec(SCHEMA)
    assert codec.encode(b"cheap") == Codec(SCHEMA).encode(orders.encode_order(0))[:33] + b"cheap"


def test_the_gate_of_a_process_can_be_told_to_take_all() -> None:
    """The gate's codecs can be replaced by those that read nothing."""
    kept = vars(codec_cache)["Codec"]
    try:
        bare_gate.take_all()
        assert vars(codec_cache)["Codec"] is bare_gate.BareCodec
    finally:
        vars(codec_cache)["Codec"] = kept
