"""Tests of the publisher of results over both databases, without a broker."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import Engine

from hopwatch.api import publisher_thread
from hopwatch.api.publisher_thread import PublisherThread, publish_all, run_publisher
from hopwatch.api.results_topic import publisher
from hopwatch.api.results_topic.records import build_record, build_schema
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.subjects import Registry
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError, StoreError, TransportError
from hopwatch.monitor.results import (
    LabelCounts,
    LabelValueKind,
    LagCause,
    LossBurst,
    LossCause,
    PathTime,
    Quantiles,
    SecondCounts,
    WindowResult,
)
from hopwatch.monitor.store import dialect, fencing, publication, schema
from hopwatch.monitor.store.subjects import SubjectStore
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.clock import ManualClock
from tests.support.conclusions import build_conclusion, window_results, write_conclusions
from tests.support.examples import examples
from tests.support.results_topic import (
    RUN,
    Fault,
    MemoryTopic,
    MemoryWriter,
    build_publisher,
    compact,
    decode,
    read_expected,
)
from tests.support.spool import START_US, STREAM_CONFIGS, pack_ids


@pytest.fixture
def writer() -> MemoryWriter:
    """Return a writer of an empty topic."""
    return MemoryTopic().writer()


def window(minute: int, stream: str = "orders") -> WindowResult:
    """Return a window of a stream."""
    return replace(build_conclusion().result, stream=stream, window_start_us=START_US + minute * WINDOW_US)


def compare(engine: Engine, topic: MemoryTopic) -> None:
    """Hold what the topic says against the store."""
    assert {key: decode(engine, value) for key, value in compact(topic.records).items()} == read_expected(engine)


def test_windows_are_published_as_they_were_written(engine: Engine, writer: MemoryWriter) -> None:
    """In the order of the writes, once, whatever their streams and times; of one that is written again the last."""
    made = build_publisher(engine, writer, RUN)
    assert made.publish_next() == 0
    write_conclusions(engine, build_conclusion(window(9), lost={"b": pack_ids(1, 2)}), build_conclusion(window(0)))
    write_conclusions(engine, *(build_conclusion(window(minute, "bills")) for minute in (0, 1, 7)))
    write_conclusions(engine, build_conclusion(window(0)))
    assert publish_all(made, ManualClock()) == 5
    assert [key.decode().partition(":")[0] for key, _ in writer.topic.records[::2]] == [
        *("bills|2026-01-01T00",) * 3,
        *("orders|2026-01-01T00",) * 2,
    ]
    compare(engine, writer.topic)
    assert publish_all(made, ManualClock()) == 0
    write_conclusions(engine, build_conclusion(window(7, "bills")))
    assert publish_all(made, ManualClock()) == 1
    compare(engine, writer.topic)


@pytest.mark.parametrize("fault", Fault)
def test_what_failed_is_published_again(engine: Engine, writer: MemoryWriter, fault: Fault) -> None:
    """Also where the answer alone was lost: the same records again."""
    made = build_publisher(engine, writer, RUN)
    write_conclusions(engine, build_conclusion())
    writer.fault = fault
    with pytest.raises(TransportError):
        made.publish_next()
    assert made.publish_next() == 1
    assert len(writer.topic.records) == (2 if fault is Fault.BEFORE else 4)
    compare(engine, writer.topic)


def test_who_has_lost_the_store_publishes_nothing(engine: Engine, writer: MemoryWriter, tmp_path: Path) -> None:
    """Neither before nor after the other began, and it leaves the other's producer alone."""
    made = build_publisher(engine, writer, RUN)
    write_conclusions(engine, build_conclusion())
    other = writer.topic.writer()

    def take() -> None:
        fencing.claim_store(engine, tmp_path / "nothing", STREAM_CONFIGS, "", "another")
        assert build_publisher(engine, other, "another").publish_next() == 1

    writer.meanwhile = take
    with pytest.raises(TransportError):
        made.publish_next()
    with pytest.raises(StoreError, match="another monitor has taken the store"):
        made.publish_next()
    assert other.epoch == writer.topic.epoch
    compare(engine, writer.topic)


def test_another_topic_is_filled_from_the_store(engine: Engine, writer: MemoryWriter) -> None:
    """Also one of the same name that was made anew."""
    made = build_publisher(engine, writer, RUN)
    write_conclusions(engine, build_conclusion())
    assert publish_all(made, ManualClock()) == 1
    again = MemoryTopic("results id-2").writer()
    assert publish_all(build_publisher(engine, again, RUN), ManualClock()) == 1
    assert again.topic.records == writer.topic.records


def test_what_waits_is_counted(engine: Engine, writer: MemoryWriter) -> None:
    """Windows, not writes; of a store that never published all of them."""
    for minute in (0, 1, 1):
        write_conclusions(engine, build_conclusion(window(minute)))
    made, counts = build_publisher(engine, writer, RUN), []
    for is_published in (False, True):
        assert not is_published or made.publish_next() == 2
        with schema.open_snapshot(engine) as connection:
            counts.append(publication.count_waiting(connection))
    assert counts == [2, 0]


def test_a_store_keeps_its_id(engine: Engine) -> None:
    """So that a monitor that starts ends the producer of the one before."""
    first = publisher.identify_store(engine)
    fencing.begin_anew(engine, Path("nothing"))
    assert (len(first), publisher.identify_store(engine)) == (32, first)


def test_a_subject_with_other_schemas_is_refused(engine: Engine, writer: MemoryWriter) -> None:
    """With its name, and what to do; the schema of results itself is found again."""
    clock = ManualClock()
    Registry(SubjectStore(engine, clock)).register("others-value", Schema.parse('"long"'))
    assert publisher.register_schema(engine, clock, "mine") == publisher.register_schema(engine, clock, "mine") == 2
    with pytest.raises(ConfigurationError) as caught:
        publisher.register_schema(engine, clock, "others")
    told = str(caught.value)
    assert told.startswith("the subject others-value is not that of results: the schema does not fit version 1 of ")
    assert told.endswith(": name another topic in [results] topic")
    del writer


@given(window_results())
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_record_says_what_the_report_says(engine: Engine, result: WindowResult) -> None:
    """Every field of a node, with any value that it may have."""
    topic = MemoryTopic()
    write_conclusions(engine, build_conclusion(result))
    publish_all(build_publisher(engine, topic.writer(), RUN), ManualClock())
    compare(engine, topic)


def test_labels_and_slow_messages_are_in_a_record(tmp_path: Path) -> None:
    """Lists of records, with null where none was kept."""
    made = dialect.create_engine(f"sqlite:///{tmp_path}/store.db")
    schema.prepare_store(made)
    number = publisher.register_schema(made, ManualClock(), "results")
    row = LabelCounts("schema", "a", LabelValueKind.OTHER, "", 5, 1, 0, 2, 1, 0, None, is_new=True, slow_dispersion=1.5)
    late = LagCause(1, "schema", LabelValueKind.VALUE, "orders/1", 3, 4, 0, 9)
    named = [one["name"] for one in build_schema()["fields"] if "null" not in one["type"]]
    node = dict.fromkeys(named[named.index("expected") :], 1)
    cause = LossCause(1, "schema", "a", LabelValueKind.NONE, "", 2, 5, 0, 9)
    slow = [{"id": "x", "lag_out_us": 3}]
    seconds, burst = SecondCounts((3, 4), (0, 2)), LossBurst(1, 2, 2, 4, 0, 3)
    lists = {"lost_ids": ["x"], "labels": [asdict(row)], "causes": [asdict(cause)], "slowest": slow}
    time = PathTime("a", Quantiles(3, -1, 2, 4, 5, 6), 3, 9, 2, 7)
    lists |= {"lag_causes": [asdict(late)], "seconds": asdict(seconds), "bursts": [asdict(burst)]}
    lists |= {"times": [asdict(time)], "overdue_ids": ["y"]}
    told = {"window_start": "T", "status": "FINAL", "revision": 0, "verdict": None, "reasons": ["why"]}
    record = build_record(number, "orders", told, node | lists | {"node": "a"}, (START_US, 7))
    found = decode(made, record.value)
    assert {name: found[name] for name in lists} == json.loads(json.dumps(lists))
    assert (record.key, found["window_start"], found["sequence"]) == (b"orders|T|a", "2026-01-01T00:00:00Z", 7)
    made.dispose()


# The thread


def test_a_thread_publishes_when_it_is_woken_and_at_its_end(engine: Engine, writer: MemoryWriter) -> None:
    """Without waiting for its next look; then the writer is let go of."""
    made, told = build_publisher(engine, writer, RUN), threading.Event()
    with run_publisher(made, SystemClock()) as wake:
        write_conclusions(engine, build_conclusion())
        writer.meanwhile = told.set
        wake()
        assert told.wait(30)
        write_conclusions(engine, build_conclusion(window(1)))
    assert writer.is_closed
    compare(engine, writer.topic)


def test_an_outage_is_told_once_and_so_is_its_end(
    engine: Engine, writer: MemoryWriter, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each try fails without a word; nothing is lost."""
    write_conclusions(engine, build_conclusion())
    thread = PublisherThread(build_publisher(engine, writer, RUN), ManualClock())
    tries = []
    for _ in range(3):
        writer.fault = Fault.BEFORE
        tries.append(thread._try())
    tries += [thread._try(), thread._try()]
    assert tries == [False, False, False, True, True]
    told = "".join(capsys.readouterr())
    assert [told.count(words) for words in ("nothing is lost: trying on", "results are published again")] == [1, 1]
    compare(engine, writer.topic)


def test_a_fault_of_our_own_is_told_as_one(
    engine: Engine, writer: MemoryWriter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The thread goes on after it."""
    made = build_publisher(engine, writer, RUN)
    monkeypatch.setattr(writer, "open", lambda: 1 // 0)
    assert not PublisherThread(made, ManualClock())._try()
    assert "a fault of Hopwatch's own: ZeroDivisionError" in "".join(capsys.readouterr())


def test_without_a_publisher_there_is_nothing_to_wake() -> None:
    """A monitor without a topic runs as before."""
    with run_publisher(None, ManualClock()) as wake:
        wake()


def test_a_run_over_everything_gives_up_after_a_while(
    engine: Engine, writer: MemoryWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what failed, and that the store has it all."""
    made, clock = build_publisher(engine, writer, RUN), ManualClock()
    write_conclusions(engine, build_conclusion())

    def fail() -> str:
        raise TransportError("the brokers are away")

    monkeypatch.setattr(writer, "open", fail)
    with pytest.raises(TransportError) as caught:
        publish_all(made, clock)
    told = "the brokers are away; the store has all results, and the next run publishes what is missing"
    assert str(caught.value) == told
    assert publisher_thread.DRAIN_S <= clock.monotonic_s() < 2 * publisher_thread.DRAIN_S
