"""Tests of the listener of streaming queries: how far a query has come, and that it ends no job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from hopwatch.probes.spark.query_listener import QueryListener
from hopwatch.probes.spark.task_stamps import MicroBatch

QUERY: Final = "11111111-2222-3333-4444-555555555555"
TRIGGER: Final = "2026-11-30T10:49:33.345Z"
TRIGGER_US: Final = 1_796_035_773_345_000


class Receiver:
    """Receiver that keeps what it is told, or fails."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.told: list[Any] = []
        self.fails = False

    def begin(self, query: str) -> None:
        """Keep it."""
        self._keep(query)

    def finish(self, micro_batch: MicroBatch) -> None:
        """Keep it."""
        self._keep(micro_batch)

    def read_through(self, query: str, moment_us: int) -> None:
        """Keep it."""
        self._keep((query, moment_us))

    def _keep(self, told: object) -> None:
        if self.fails:
            raise RuntimeError("a fault of ours")
        self.told.append(told)


def build_progress(*sources: tuple[str, str]) -> Any:  # noqa: ANN401 - as Spark builds them
    """Return the progress of a micro-batch, with what its sources read and have."""
    found = [SimpleNamespace(endOffset=end, latestOffset=latest) for end, latest in sources]
    return SimpleNamespace(progress=SimpleNamespace(id=QUERY, batchId=4, timestamp=TRIGGER, sources=found))


@pytest.mark.parametrize(
    ("sources", "is_complete"),
    [
        ([('{"o":{"0":5}}', '{"o":{"0":5}}')], True),
        ([('{"o":{"0":5}}', '{"o":{"0":9}}')], False),
        ([('{"o":{"0":5}}', '{"o":{"0":5}}'), ('{"logOffset":0}', "None")], False),
    ],
)
def test_a_trigger_that_took_all_completes_its_moment(
    sources: list[tuple[str, str]],
    is_complete: bool,  # noqa: FBT001
) -> None:
    """Each source has to say that nothing is left; the micro-batch is finished before."""
    receiver, warned = Receiver(), list[str]()
    QueryListener(receiver, warned.append).onQueryProgress(build_progress(*sources))
    assert receiver.told == [MicroBatch(QUERY, 4), *([(QUERY, TRIGGER_US)] if is_complete else [])]
    assert warned == []


def test_an_idle_query_has_read_all() -> None:
    """A trigger that found nothing completes its moment; the end of a query completes none."""
    receiver = Receiver()
    listener = QueryListener(receiver, list[str]().append)
    event: Any = SimpleNamespace(id=QUERY, timestamp=TRIGGER, exception=None)
    listener.onQueryStarted(event)
    listener.onQueryIdle(event)
    listener.onQueryTerminated(event)
    assert receiver.told == [QUERY, (QUERY, TRIGGER_US)]


def test_a_fault_of_ours_is_told() -> None:
    """Spark hears of none."""
    receiver, warned = Receiver(), list[str]()
    receiver.fails = True
    listener = QueryListener(receiver, warned.append)
    event: Any = SimpleNamespace(id=QUERY, timestamp="yesterday")
    listener.onQueryStarted(event)
    listener.onQueryProgress(build_progress())
    listener.onQueryIdle(event)
    assert warned == [
        "the start of a query cannot be read: a fault of ours",
        "the progress of a query cannot be read: a fault of ours",
        "the progress of a query cannot be read: Invalid isoformat string: 'yesterday'",
    ]
