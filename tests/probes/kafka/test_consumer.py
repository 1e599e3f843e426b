"""Tests of what a consumer hands over: records up to a wanted end, and ends of partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.kafka.consumer import is_partition_end, read_headers, read_recorded_us, take_until
from tests.support.raw_producer import RawCluster, raw_cluster

RECORD = cast("Any", Message)
"""Its stub knows of no arguments."""
END = KafkaError(KafkaError._PARTITION_EOF)
TROUBLE = KafkaError(KafkaError._TRANSPORT)


def test_only_the_end_of_a_partition_is_its_end() -> None:
    """No error is none, and trouble is none."""
    assert [is_partition_end(error) for error in (END, TROUBLE, None)] == [True, False, False]


@given(counts=st.lists(st.integers(1, 20), min_size=1, max_size=3), data=st.data())
def test_each_record_before_the_end_is_taken_and_nothing_behind_it(counts: list[int], data: st.DataObject) -> None:
    """All records before the end offsets are taken and no others, however the partitions are mixed."""
    ends = {number: data.draw(st.integers(1, count)) for number, count in enumerate(counts)}
    mixed = data.draw(st.permutations([number for number, count in enumerate(counts) for _ in range(count)]))
    offsets = dict.fromkeys(ends, 0)
    messages = []
    for number in mixed:
        messages.append(RECORD(topic="t", partition=number, offset=offsets[number]))
        offsets[number] += 1
    left = dict(ends)
    taken = sorted((one.partition(), one.offset()) for one in take_until(messages, left))
    assert taken == [(number, at) for number, end in ends.items() for at in range(end)]
    assert not left


def test_the_end_of_a_partition_ends_it_and_trouble_does_not() -> None:
    """A topic may end before the wanted offset: its last records were of a transaction that was given up."""
    left = {0: 9, 1: 9}
    messages = [RECORD(topic="t", partition=0, offset=4, error=END), RECORD(topic="t", partition=1, error=TROUBLE)]
    assert (list(take_until(messages, left)), left) == ([], {1: 9})


def test_a_record_may_have_no_time_of_its_own() -> None:
    """Kafka says so by its kind, or by -1."""
    for stamp, us in (((1, 7), 7_000), ((2, 0), 0), ((0, 7), None), ((1, -1), None)):
        assert read_recorded_us(RECORD(topic="t", timestamp=stamp)) == us


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[RawCluster]:
    """Return a broker."""
    with raw_cluster() as cluster:
        yield cluster


def test_headers_are_read(cluster: RawCluster) -> None:
    """In their order, and none of a record without any."""
    assert read_headers(cluster.read_back(b"x", [(b"b", b"1"), (b"a", b"\xff"), (b"b", b"")], "good")) == [
        ("b", b"1"), ("a", b"\xff"), ("b", b""),
    ]  # fmt: skip
    assert read_headers(cluster.read_back(b"x", [], "none")) == []


def test_a_header_whose_name_is_no_utf_8_is_an_error_however_often_headers_were_read(cluster: RawCluster) -> None:
    """Not a crash, though Python calls what it has called often in another way; nor does a second look crash."""
    good = RECORD(topic="t", headers=[("a", b"1")])
    for calls in (0, 1, 1_000):
        bad = cluster.read_back(b"x", [(b"hopwatch-id", b"1"), (b"\xff", b"v")], f"bad{calls}")
        assert {len(read_headers(good)) for _ in range(calls)} <= {1}
        with pytest.raises(ValueError, match="the name of a header is no UTF-8"):
            read_headers(bad)
        assert (read_headers(bad), bad.headers()) == ([], [])
