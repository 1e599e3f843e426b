"""``hopwatch validate kafka`` on a real broker: each record ends in one of two topics, once, whoever is killed when."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path as Folder

import orjson
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from hopwatch.cli.gate_builder import build_stamping
from hopwatch.gate import ids
from hopwatch.gate.codec import Codec
from hopwatch.gate.event_checks import EventPolicy
from hopwatch.gate.record_checks import RecordChecker
from hopwatch.gate.registry.subjects import Registry
from hopwatch.gate.resolution_cache import ResolutionCache
from hopwatch.gate.retry import KafkaRetry
from hopwatch.gate.rules import Action, EventRule, FieldPath, Uniqueness
from hopwatch.gate.topic_source import TopicSource
from hopwatch.gate.transactions import OutputTopics, TransactionalWriter
from hopwatch.gate.validator import Validator, find_lookback_us
from hopwatch.monitor import settings
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.store import dialect
from hopwatch.monitor.store.subjects import SubjectStore
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.topic import SourceTopic
from servers.kafka import Kafka
from servers.process import PATIENCE_S, until
from tests.real.validated_traffic import Traffic, check_all
from tests.real.validators import BODY, PARTITIONS, PLAIN, RUN, Place, id_of, rejected
from tests.support.probe_host import ROOT, rows, spooled
from tests.support.program import Program
from tests.support.raw_producer import produce_raw
from tests.support.schemas import FIRST, SECOND, schema


@pytest.fixture
def place(kafka: Kafka, request: pytest.FixtureRequest, tmp_path: Folder) -> Iterator[Place]:
    """Yield a stream of the test's own."""
    made = Place(kafka, str(request.node.name).replace("[", "-").replace("]", "")[:150], tmp_path)
    yield made
    made.close()


def test_all_three_forms_arrive_as_the_latest_version(place: Place) -> None:
    """The envelope, Confluent's framing and JSON, by either version: b has its default where it was not written."""
    old, new = place.framed(FIRST, {"a": 1}), place.framed(SECOND, {"a": 2, "b": 3})
    place.send(old, 1, key=b"k1")
    place.send(b"\0" + place.numbers[0].to_bytes(4) + old[BODY:], 2)
    place.send(new, 3)
    place.send(b"\0" + place.numbers[1].to_bytes(4) + new[BODY:], 4)
    place.send(b'{"a":5}', 5)
    place.sent()
    with place.running() as process:
        found = place.good(5)
        assert place.stop(process) == {"read": 5, "validated": 5, "rejected": 0}
    codec = Codec(schema(SECOND))
    values = {id_of(one): codec.decode(one.value() or b"") for one in found}
    assert values == {"1": {"a": 1, "b": 7}, "2": {"a": 1, "b": 7}, "3": {"a": 2, "b": 3}, "4": {"a": 2, "b": 3},
                      "5": {"a": 5, "b": 7}}  # fmt: skip
    assert next(one.key() for one in found if id_of(one) == "1") == b"k1"
    assert {row.message_id for batches in spooled(place.spool).values() for row in rows(batches)} == {
        id_bytes(str(number)) for number in range(1, 6)
    }
    assert [batches[-1].kind for batches in spooled(place.spool).values()] == [BatchKind.BYE]


def test_what_is_broken_is_rejected_with_its_reason(place: Place) -> None:
    """Poison stops nothing: each record lies among the rejected, as it came, with where it stood; its stamp says so."""
    good = place.framed(SECOND, {"a": 1, "b": 2})
    broken: list[tuple[bytes | None, str]] = [
        (good + b"x", "1 bytes follow the event"),
        (good[:-1], "it ends within a value"),
        (good[:BODY] + b"\xff" * 11, "a number has at most 64 bits"),
        (
            good[:1] + bytes(32) + good[BODY:],
            f"unknown_schema: there is no schema {bytes(32).hex()}: register the writer's schema",
        ),
        (b"\0\0\0\0\x63\0", "unknown_schema: there is no schema 99: register the writer's schema"),
        (b"\0\0", "a value begins with 00 and the number of a schema, got 0000"),
        (b'{"a":"x"}', "Input should be a valid integer"),
        (b"{", "Invalid JSON"),
        (None, "the record has no value"),
        (b'{"a":1,"b":2}' + b" " * 300_000, "an event has at most 262,144 bytes, got 300,013"),
    ]
    for number, (value, _) in enumerate(broken):
        place.send(value, number)
    place.send(good, "old", headers=[(ID_HEADER, "old"), (TIME_HEADER, "7")])
    place.send(good, "timeless", headers=[(ID_HEADER, "timeless")])
    place.send(good, "wide", headers=[("wide", b"x" * 70_000), (ID_HEADER, "wide"), (TIME_HEADER, "7")])
    place.send(good, "good")
    place.sent()
    with place.running() as process:
        found = {id_of(one): one for one in place.bad(13)}
        assert [id_of(one) for one in place.good(1)] == ["good"]
        assert place.stop(process) == {"read": 14, "validated": 1, "rejected": 13}
    told = {rejected(one).event_id: rejected(one) for one in found.values()}
    for number, (value, reason) in enumerate(broken):
        one = told[id_bytes(str(number))]
        assert one.reasons[0].detail.startswith(reason), one
        assert one.data == (value or b"")[: 256 * 1024]
        assert one.producer.startswith(f"{place.name}/")
    assert "s old, 86400 s are allowed" in told[id_bytes("old")].reasons[0].detail
    assert told[id_bytes("timeless")].reasons[0].detail == "it has no event time: no header hopwatch-time"
    wide = told[id_bytes("wide")]
    assert wide.reasons[0].detail.startswith("key and headers have at most 65,536 bytes, got 70,0")
    stamped = [row for batches in spooled(place.spool).values() for row in rows(batches)]
    assert {row.message_id for row in stamped if row.outcome == 2} == set(told)
    assert {row.message_id for row in stamped if row.outcome == 0} == {id_bytes("good")}


@pytest.mark.parametrize(("flags", "has_text"), [((), True), (("--no-id-text",), False)])
def test_a_record_without_an_id_is_known_by_its_place(place: Place, flags: tuple[str, ...], has_text: bool) -> None:  # noqa: FBT001
    """By the topic, partition and offset, which hopwatch find takes as a text; its probe sends the text if it may."""
    place.send(b'{"a":1}', partition=1)
    place.sent()
    with place.running(*flags) as process:
        (found,) = place.good(1)
        place.stop(process)
    named = f"{place.name}/1/0"
    assert id_of(found) == ids.format_uuid(id_bytes(named))
    (texts,) = {batch.id_texts for batches in spooled(place.spool).values() for batch in batches if batch.count}
    assert texts == (named.encode() if has_text else b"")


def test_ids_and_times_stand_in_values_too(place: Place) -> None:
    """By --id, --time and --time-unit; the record's own time with --time-record."""
    now_s = int(time.time())
    place.send(b'{"a":%d}' % now_s, headers=[])
    place.sent()
    with place.running("--id", "a", "--time", "a", "--time-unit", "s") as process:
        (found,) = place.good(1)
        place.stop(process)
    assert id_of(found) == ids.format_uuid(id_bytes(now_s))
    assert dict(found.headers() or [])[TIME_HEADER] == b"%d" % (now_s * 1_000_000)
    place.send(b'{"a":1}', headers=[])
    place.sent()
    with place.running("--time-record") as process:
        (timed,) = [one for one in place.good(2) if one.value() != found.value()]
        place.stop(process)
    assert dict(timed.headers() or [])[TIME_HEADER] == b"%d" % (timed.timestamp()[1] * 1_000)


def test_records_of_odd_times_and_headers_go_on(place: Place) -> None:
    """A topic may take times that the other two do not, and headers whose names are no UTF-8: neither blocks."""
    admin = place.kafka.admin()
    wide = ConfigEntry("message.timestamp.after.max.ms", str(2**63 - 1), incremental_operation=AlterConfigOpType.SET)
    asked = ConfigResource(ConfigResource.Type.TOPIC, place.name, incremental_configs=[wide])
    (answer,) = admin.incremental_alter_configs([asked]).values()
    answer.result()
    for number, at_ms in enumerate((2**62, -5, int(time.time() * 1_000) + 10**8)):
        place.send(b'{"a":1}', number, timestamp=at_ms)
    place.send(b'{"a":2}', 9)
    place.sent()
    produce_raw(place.kafka.bootstrap, place.name, b'{"a":3}', [(b"\xff", b"")])
    with place.running() as process:
        assert len(place.good(4)) == 4
        (bad,) = place.bad(1)
        assert place.stop(process) == {"read": 5, "validated": 4, "rejected": 1}
    assert rejected(bad).reasons[0].detail == "the name of a header is no UTF-8: the headers are left out"


def test_a_topic_that_is_missing_is_told_when_it_starts(place: Place) -> None:
    """One line says what to do; exit code 3."""
    for gone in (f"{place.name}.bad", place.name):
        place.kafka.delete_topic(gone)
        with place.running() as process:
            assert process.wait(PATIENCE_S) == 3
        last = place.said().splitlines()[-1]
        assert last.startswith(f"hopwatch: the topic {gone} at 127.0.0.1:"), last
        assert "then start again" in last


def test_a_topic_that_does_not_take_what_is_written_is_told(kafka: Kafka, place: Place) -> None:
    """A topic that refuses a record ends the validator with 3 and nothing committed; it goes on once that is fixed."""
    name = f"{place.name}.good"
    kafka.delete_topic(name)
    kafka.create_topic(name, PARTITIONS, {"max.message.bytes": "1000"})
    place.register({**SECOND, "fields": [*SECOND["fields"], {"name": "t", "type": "string", "default": ""}]})
    long = bytes(random.Random(1).choices(range(97, 123), k=5_000)).decode()
    place.send(orjson.dumps({"a": 1, "t": long}), "long")
    place.sent()
    with place.running() as process:
        assert process.wait(PATIENCE_S) == 3
    assert f"the topic {name} cannot be written: Broker: Message size too large: raise its max" in place.said()
    kafka.delete_topic(name)
    kafka.create_topic(name, PARTITIONS, PLAIN)
    with place.running() as process:
        (found,) = place.good(1)
        assert place.stop(process) == {"read": 1, "validated": 1, "rejected": 0}
    assert id_of(found) == "long"


def test_topics_of_two_clusters_are_refused(place: Place, own_broker: Kafka) -> None:
    """A transaction lies within one; exit code 2."""
    for topic in (f"{place.name}.good", f"{place.name}.bad"):
        own_broker.create_topic(topic, PARTITIONS, PLAIN)
    place.config.write_text(place.config.read_text().replace(place.kafka.bootstrap, own_broker.bootstrap))
    with place.running() as process:
        assert process.wait(PATIENCE_S) == 2
    assert "is in another cluster than --from: a transaction lies within one" in place.said()


def test_a_new_group_begins_at_the_end(place: Place) -> None:
    """Of what came before it reads nothing; where it began holds, also if it was killed before its first turn."""
    place.send(b'{"a":1}', "before", partition=0)
    place.sent()
    arguments = [one for one in place.arguments() if one != "--from-start"]
    with place.said_in.open("ab") as said:
        first = Program([*RUN, *arguments], folder=ROOT, out=said)
    try:
        until(lambda: sum(place.committed().values()) == 1, "it has begun")
    finally:
        first.kill()
        first.wait()
    place.send(b'{"a":2}', "after", partition=0)
    place.sent()
    with place.running() as process:
        found = place.good(1)
        place.stop(process)
    assert [id_of(one) for one in found] == ["after"]


class Within:
    """A validator in this process, whose values are to be unique."""

    def __init__(self, place: Place, within_us: int) -> None:
        """Put the parts together, as the command does."""
        chosen = settings.load(place.config, flags={}, environ={})
        self.heard: list[str] = []
        around = RunContext(self.heard.append)
        topic = SourceTopic(place.kafka.url(place.name), place.name, around, from_start=True)
        patience = KafkaRetry(around)
        outputs = OutputTopics(f"{place.name}.good", f"{place.name}.bad")
        turns = TransactionalWriter(place.kafka.bootstrap, outputs, KafkaAccess(), group=place.name, patience=patience)
        rules = (EventRule("a once", Uniqueness(FieldPath(("a",)), within_us), Action.REJECT),)
        registry = Registry(SubjectStore(dialect.create_engine(chosen.store.url), SystemClock()))
        validating = RecordChecker(
            "orders", ResolutionCache(registry, "orders", around.clock), EventPolicy(10**12, rules)
        )
        source = TopicSource(topic, patience, around, from_start=True, back_us=find_lookback_us(rules))
        stamping = build_stamping(chosen, "orders")
        self.around = around
        self.validator = Validator(source, validating, turns, stamping=stamping, around=around)

    def run(self, count: int) -> tuple[int, int]:
        """Let it read so many records, and return how many of them were validated and rejected."""
        thread = threading.Thread(target=self.validator.run)
        thread.start()
        try:
            until(lambda: self.validator.counts.read >= count, f"{count} are read; {self.heard}")
        finally:
            self.around.stop.set()
            thread.join()
        return self.validator.counts.validated, self.validator.counts.rejected


def test_what_has_to_be_unique_is_known_after_a_restart(place: Place) -> None:
    """From the topic itself, of which enough is read again; nothing of that is written again."""
    place.send(b'{"a":1}', "first")
    place.send(b'{"a":2}', "second")
    place.sent()
    assert Within(place, 3_600_000_000).run(2) == (2, 0)
    place.send(b'{"a":1}', "third")
    place.send(b'{"a":1}', "first")
    place.send(b'{"a":3}', "fourth")
    place.sent()
    assert Within(place, 3_600_000_000).run(3) == (2, 1)
    assert sorted(id_of(one) for one in place.good(4)) == ["first", "first", "fourth", "second"]
    (found,) = place.bad(1)
    assert rejected(found).reasons[0].detail == "a once: another event had it in the 3600 s before"


def test_what_was_known_for_too_long_is_not_read_again(place: Place) -> None:
    """Values are free again after their time."""
    place.send(b'{"a":1}', "first")
    place.sent()
    assert Within(place, 1_000_000).run(1) == (1, 0)
    time.sleep(1.1)
    place.send(b'{"a":1}', "second")
    place.sent()
    assert Within(place, 1_000_000).run(1) == (1, 0)


def moves(place: Place) -> Callable[[], bool]:
    """Return what says whether each partition was validated further since now."""
    before = place.committed()
    return lambda: all(at > before[number] for number, at in place.committed().items())


def test_a_validator_that_is_killed_loses_and_repeats_nothing(place: Place, times: Callable[[int, int], int]) -> None:
    """SIGKILL while it writes, twice or more: who reads what is committed sees each record once."""
    chance = random.Random(7)
    with Traffic(place) as traffic:
        for _ in range(times(2, 8)):
            written = place.written()
            with place.running() as killed:
                until(lambda least=written: place.written() > least, "it writes")  # type: ignore[misc]
                time.sleep(chance.uniform(0.0, 0.3))
                os.kill(killed.pid, signal.SIGKILL)
                killed.wait()
        with place.running() as last:
            time.sleep(2)
            count = traffic.end()
            check_all(place, count)
            place.stop(last)
        assert count > 1_000


def test_two_of_a_group_share_the_topic(place: Place) -> None:
    """One comes and one goes, and nothing is done twice."""
    with Traffic(place) as traffic, place.running() as first:
        until(lambda: bool(place.read(f"{place.name}.good", 1, 1.0)), "the first one validates")
        with place.running() as second:
            until(lambda: len(place.dealt_out()) == 2, "both have partitions")
            until(moves(place), "both go on")
            counts = [place.stop(second)]
        until(moves(place), "the first one goes on with all")
        count = traffic.end()
        check_all(place, count)
        counts.append(place.stop(first))
    assert counts[0]["read"] > 0
    assert sum(one["read"] for one in counts) == count
