"""Tests of labels of messages: batches are split by them, and a stamp counts whatever its labels are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch import Probe
from hopwatch.probes import recorder
from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.taps.documents import StampableMessage
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink
from tests.support.tap_bench import Place

Stamped = tuple[int, dict[str, Any], dict[str, Any], bool]
"""Message, the labels of its arrival and departure, and whether it leaves."""
LABELS: Final = [{}, {"partition": 1}, {"partition": "2"}, {"zone": "a", "partition": 1}]


def sent(sink: MemorySink) -> list[Batch]:
    """Return the batches that have observations."""
    return [batch for batch in map(decode, sink.records) if batch.count]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(LABELS), st.sampled_from(LABELS), st.booleans()), max_size=12)
)
def test_a_message_has_the_labels_of_its_stamps(
    stamped: list[tuple[int, dict[str, Any], dict[str, Any], bool]],
) -> None:
    """As texts; of a label that both of its stamps have, the arrival's value counts; no message is sent twice."""
    sink, expected = MemorySink(), dict[bytes, Mapping[str, str]]()
    with Probe("orders", "router", sink, labels={"host": "a"}, clock=ManualClock()) as probe:
        for number, arrived, departed, leaves in stamped:
            if id_bytes(number) in expected:
                continue
            probe.arrived(number, EPOCH_US, labels=arrived)
            if leaves:
                probe.departed(number, EPOCH_US, labels=departed)
            both = (departed if leaves else {}) | arrived
            expected[id_bytes(number)] = {name: str(value) for name, value in both.items()}
    found = {
        batch.message_ids[at : at + 16]: {name: value for name, value in batch.labels.items() if name != "host"}
        for batch in sent(sink)
        for at in range(0, len(batch.message_ids), 16)
    }
    assert found == expected
    assert sum(batch.count for batch in sent(sink)) == len(expected)
    assert all(batch.labels["host"] == "a" for batch in sent(sink))


def test_all_kinds_of_stamps_have_labels() -> None:
    """Arrays, and what ends at the node, too."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        probe.filtered(1, EPOCH_US, "test", labels={"partition": 0})
        probe.rejected(2, EPOCH_US, labels={"partition": 1})
        probe.arrived_many([3], [EPOCH_US], schema="orders/1", labels={"partition": 2})
        probe.departed_many([3], [EPOCH_US], labels={"out_partition": 9})
    assert sorted(sorted(batch.labels.items()) for batch in sent(sink)) == [
        [("out_partition", "9"), ("partition", "2"), ("schema", "orders/1")],
        [("partition", "0")],
        [("partition", "1")],
    ]


class Hostile:
    """Raises at whatever is done to it."""

    def __getattr__(self, name: str) -> object:
        """Raise."""
        raise RuntimeError(name)

    def __str__(self) -> str:
        """Raise."""
        raise RuntimeError

    def __bool__(self) -> bool:
        """Raise."""
        raise RuntimeError


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (Hostile, {}), (lambda: {"partition": Hostile()}, {}), (lambda: 7, {}), (lambda: "ab", {}),
        (lambda: {"x" * 99: "\ud800"}, {"x" * 64: "?"}),
        (lambda: {str(number): number for number in range(99)}, {str(number): str(number) for number in range(8)}),
    ],
)  # fmt: skip
def test_a_stamp_counts_whatever_its_labels_are(make: Callable[[], Any], expected: dict[str, str]) -> None:
    """Labels are left out where they cannot be sent, and cut to what the wire takes; nothing is dropped or raised."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        probe.arrived(1, EPOCH_US, labels=make())
        probe.arrived_many([2], [EPOCH_US], labels=make())
        assert probe.dropped == 0
    assert [(batch.labels, batch.count) for batch in sent(sink)] == [(expected, 2)]


@pytest.mark.parametrize(("labels", "got"), [(7, "int"), ({str(number): 0 for number in range(9)}, "9")])
def test_a_strict_probe_refuses_bad_labels(labels: Any, got: str) -> None:  # noqa: ANN401 - anything
    """With an error that says how they look."""
    with Probe("orders", "router", MemorySink(), clock=ManualClock(), strict=True) as probe:
        told = f"labels of a message are a mapping of at most 8, got {got}"
        with pytest.raises(ProbeError, match=told):
            probe.arrived(1, EPOCH_US, labels=labels)
        with pytest.raises(ProbeError, match=told):
            probe.arrived_many([1], [EPOCH_US], labels=labels)


def test_beyond_the_bound_a_message_keeps_the_labels_of_its_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a value of its own for each message makes no batch for each."""
    monkeypatch.setattr(recorder, "MAX_LABEL_SETS", 2)
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        for number in range(9):
            probe.arrived(number, EPOCH_US, labels={"partition": 1})
            probe.departed(number, EPOCH_US, labels={"out_partition": number})
    assert sum(batch.count for batch in sent(sink)) == 9
    assert {tuple(batch.labels.items()) for batch in sent(sink)} == {(("partition", "1"),)}


def test_a_tap_of_a_topic_says_the_partition() -> None:
    """A tap of a file does not."""
    place = Place()
    place.stamping.stamp_messages(
        StampableMessage(id_bytes(number), EPOCH_US, partition=partition)
        for number, partition in enumerate((0, 1, None, 0))
    )
    assert place.stamping.settle()
    batches = [batch for batch in map(decode, place.sink.records) if batch.count]
    assert sorted((batch.labels.get("partition", ""), batch.count) for batch in batches) == [
        ("", 1),
        ("0", 2),
        ("1", 1),
    ]
