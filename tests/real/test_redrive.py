"""Redrive of lost messages on a real broker: what is proven lost goes again, at a rate, and over a kill."""

from __future__ import annotations

import json
import random
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from hopwatch.deliver.redrive import sender
from hopwatch.deliver.redrive.messages import REDRIVEN_HEADER
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from servers.kafka import Kafka
from servers.process import PATIENCE_S, until
from tests.support.probe_host import ROOT
from tests.support.program import Program
from tests.support.spool import START_MS, at_us, observation_batch
from tests.support.topic_records import read_records
from tests.support.workspace import CONFIGURATION, Workspace, closing_batches

PARTITIONS: Final = 2
WINDOW: Final = ("--window", "2026-01-01T00:00:00Z")
AT_B: Final = ("--stream", "orders", "--node", "b")


def name_id(number: int) -> str:
    """Return the id of a numbered message as its header has it."""
    return str(uuid.UUID(int=number))


class Place:
    """A topic that node a writes, and a store in which messages of it are lost at node b."""

    def __init__(self, kafka: Kafka, topic: str, folder: Path) -> None:
        """Make topic and configuration."""
        self.kafka, self.topic = kafka, topic
        # Messages of tests are from the first of January.
        kafka.create_topic(topic, PARTITIONS, {"retention.ms": "-1"})
        text = CONFIGURATION + f'topics = {{ a = "{kafka.url(topic)}" }}\n'
        self.workspace = Workspace(folder).configure(text)
        self.state = folder / "redrive.jsonl"

    def write(self, numbers: Iterable[int], **more: Any) -> None:  # noqa: ANN401 - as the client takes it
        """Write messages, of each second of the window, with marks and a header of the service's own."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "acks": "all"})
        for number in numbers:
            headers: list[tuple[str, str | bytes | None]] = [
                (ID_HEADER, name_id(number)),
                ("own", b"\0\xff"),
                (TIME_HEADER, str(at_us(number % 60))),
                ("empty", None),
            ]
            given: dict[str, Any] = {
                "value": b"value of %d" % number,
                "key": b"key of %d" % number,
                "headers": headers,
                "timestamp": START_MS + number % 60 * 1_000,
                "partition": number % PARTITIONS,
            }
            producer.produce(self.topic, **(given | more))
        assert producer.flush(PATIENCE_S) == 0

    def lose(self, count: int, lost: Sequence[int]) -> None:
        """Let the monitor judge that of so many messages some are lost on the way from a to b."""
        seen = [number for number in range(count) if number not in lost]
        stamped = observation_batch(range(count), id_kind=WireIdKind.UUID)
        here = observation_batch(seen, "b", id_kind=WireIdKind.UUID)
        self.workspace.watch(stamped, here, *closing_batches(seq=1))

    def read(self, topic: str = "") -> list[Message]:
        """Return all records of a topic, partition by partition."""
        return read_records(self.kafka, topic or self.topic)

    def flags(self, *more: str) -> list[str]:
        """Return the flags of a redrive that sends."""
        return [*AT_B, "--rate", "10000", "--state", str(self.state), *more]

    def runs(self) -> list[dict[str, Any]]:
        """Return the lines of runs in the state."""
        lines = [json.loads(line) for line in self.state.read_text().splitlines()]
        return [line["run"] for line in lines if "run" in line]

    def find_in_doubt(self) -> set[str]:
        """Return the ids that the state has as about to be sent, and not as sent."""
        sending, sent = set[str](), set[str]()
        for line in map(json.loads, self.state.read_text().splitlines()):
            sending.update(line.get("sending", ()))
            sent.update(line.get("sent", ()))
        return {str(uuid.UUID(key.partition("/")[2])) for key in sending - sent}


def count_records(place: Place) -> int:
    """Return how many records a place's topic has."""
    consumer = Consumer({"bootstrap.servers": place.kafka.bootstrap, "group.id": "test"})
    parts = [TopicPartition(place.topic, number) for number in range(PARTITIONS)]
    return sum(consumer.get_watermark_offsets(part, PATIENCE_S)[1] for part in parts)


def find_copies(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """Return the ids of the records that were sent again, in order, each with its count."""
    headers = [dict(message.headers() or ()) for message in messages]
    return [(one[ID_HEADER].decode(), one[REDRIVEN_HEADER].decode()) for one in headers if REDRIVEN_HEADER in one]


@pytest.fixture
def place(kafka: Kafka, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a place of the test's own."""
    return Place(kafka, str(request.node.name).replace("[", "-").replace("]", "")[:200], tmp_path)


def told(place: Place, capsys: pytest.CaptureFixture[str], *flags: str, code: int = 0) -> dict[str, Any]:
    """Return the JSON of a redrive."""
    capsys.readouterr()
    assert place.workspace.run("redrive", *flags, "--json") == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_lost_messages_are_sent_again_unchanged(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Key, value, headers, time and partition stay, with one header more; the run is noted."""
    place.write(range(10))
    place.lose(10, [3, 9])
    before = place.read()
    assert told(place, capsys, *AT_B, *WINDOW, "--dry-run")["found"] == 2
    assert len(place.read()) == len(before)
    found = told(place, capsys, *place.flags(*WINDOW, "--why", "incident 7"))
    assert (found["lost"], found["found"], found["sent"], found["repeated"]) == (2, 2, 2, [])
    after = place.read()
    assert len(after) == len(before) + 2
    assert sorted(find_copies(after)) == [(name_id(3), "1"), (name_id(9), "1")]
    for number in (3, 9):
        first, second = [one for one in after if one.key() == b"key of %d" % number]
        for part in ("value", "timestamp", "partition"):
            assert getattr(first, part)() == getattr(second, part)()
        assert second.headers() == [*(first.headers() or ()), (REDRIVEN_HEADER, b"1")]
    began, ended = place.runs()
    assert (began["why"], began["lost"], "ended" in began) == ("incident 7", 2, False)
    assert (ended["sent"], ended["not_found"], ended["stopped"]) == (2, 0, False)


def test_what_may_be_lost_is_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """The probe of b fell silent: the topic is not even read, and the reason says how much is known."""
    place.write(range(10))
    place.workspace.watch(observation_batch(range(10)), observation_batch(range(9), "b"))
    found = told(place, capsys, *place.flags(*WINDOW), code=1)
    assert (found["lost"], found["sent"], found["topics"]) == (0, 0, [])
    (refused,) = found["refused"]
    assert refused["reason"] == "UNKNOWN: of 1 that are missing here 0 are surely lost"
    assert find_copies(place.read()) == []


def test_ids_of_a_list_are_sent_again_and_others_are_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """One that was delivered is not, nor one that nobody knows; of the lost ones only those that are listed."""
    place.write(range(10))
    place.lose(10, [3, 8, 9])
    file = place.state.with_name("ids")
    file.write_text(f"{name_id(9)}\n{name_id(1)}\nnobody\n")
    found = told(place, capsys, *place.flags("--ids-from", str(file)), code=1)
    assert [(one["id"], one["reason"]) for one in found["refused"]] == [
        (name_id(1), "the store does not list it as missing at b"),
        ("nobody", "the store does not list it as missing at b"),
    ]
    assert find_copies(place.read()) == [(name_id(9), "1")]


def test_a_message_is_sent_again_three_times_at_most(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Each run with a state of its own counts one more; the fourth sends nothing and says so."""
    place.write(range(10))
    place.lose(10, [3])
    for count in (1, 2, 3):
        place.state = place.state.with_name(f"state-{count}")
        assert told(place, capsys, *place.flags(*WINDOW))["sent"] == 1
        # The same state again sends nothing.
        again = told(place, capsys, *place.flags(*WINDOW))
        assert (again["sent"], again["sent_before"]) == (0, 1)
    place.state = place.state.with_name("state-4")
    last = told(place, capsys, *place.flags(*WINDOW), code=1)
    assert (last["found"], last["sent"]) == (1, 0)
    assert last["skipped"] == [{"id": name_id(3), "window_start": "2026-01-01T00:00:00Z"}]
    assert find_copies(place.read()) == [(name_id(3), str(count)) for count in (1, 2, 3)]


def test_what_has_aged_out_is_named(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """One partition was emptied by the broker: its message is gone, that of the other one is sent."""
    place.write(range(10))
    place.lose(10, [3, 8])
    place.kafka.age_out(place.topic, 1)
    found = told(place, capsys, *place.flags(*WINDOW), code=1)
    assert [one["id"] for one in found["aged_out"]] == [name_id(3)]
    assert (found["sent"], found["not_found"]) == (1, [])


def test_what_the_topic_never_had_is_not_found(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing has aged out, so that nothing is said to; a record without a readable id is counted."""
    place.write(range(9))
    place.write([0], headers=[("own", b"x")])
    place.lose(10, [3, 9])
    found = told(place, capsys, *place.flags(*WINDOW), code=1)
    assert [one["id"] for one in found["not_found"]] == [name_id(9)]
    assert (found["sent"], found["aged_out"], found["unreadable"]) == (1, [], {"no_id": 1})


def test_an_id_may_stand_in_the_value(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """At a path of JSON, as taps take it; another message of that id in another window stays."""
    for moment_s in (9, 600):
        value = json.dumps({"order": {"id": name_id(9)}, "at": at_us(moment_s)}).encode()
        place.write([9], headers=None, value=value)
    place.lose(10, [9])
    found = told(place, capsys, *place.flags(*WINDOW, "--id-json", "order.id", "--time-json", "at"))
    assert found["sent"] == 1
    (copy,) = [one for one in place.read() if one.headers() == [(REDRIVEN_HEADER, b"1")]]
    assert json.loads(copy.value() or b"")["at"] == at_us(9)


@pytest.mark.soak
def test_many_messages_keep_the_rate_within_a_twentieth(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Three thousand at a hundred a second, by the broker's time of arrival."""
    target = f"{place.topic}-target"
    place.kafka.create_topic(target)
    place.write(range(4_000))
    place.lose(4_000, range(1_000, 4_000))
    flags = ("--rate", "100", "--state", str(place.state), "--to-topic", place.kafka.url(target))
    assert told(place, capsys, *AT_B, *WINDOW, *flags)["sent"] == 3_000
    arrived_ms = [one.timestamp()[1] for one in place.read(target)]
    assert (max(arrived_ms) - min(arrived_ms)) / 1_000 == pytest.approx(2_999 / 100, rel=0.05)


def test_what_arrived_after_all_is_recovered(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """The command waits until the store has it, and says how many did; later it says so at once."""
    place.write(range(10))
    place.lose(10, [3, 9])
    first = told(place, capsys, *place.flags(*WINDOW))
    assert (first["sent"], first["recovered"]) == (2, 0)
    (place.workspace.folder / "store.db").unlink()
    place.lose(10, [9])
    # One is still missing: the wait ends with its time.
    began_s = time.monotonic()
    flags = place.flags(*WINDOW, "--wait", "1")
    second = told(place, capsys, *flags)
    assert (second["lost"], second["sent_before"], second["recovered"]) == (1, 1, 1)
    assert time.monotonic() - began_s >= 1
    (place.workspace.folder / "store.db").unlink()
    place.lose(10, [])
    assert place.workspace.run("redrive", *place.flags(*WINDOW, "--wait", "600")) == 0
    assert capsys.readouterr().out.endswith(": 0 found, 0 sent, 2 recovered\n")


def test_messages_go_at_the_rate_to_another_topic(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """The broker's time of arrival says how fast they came."""
    target = f"{place.topic}-target"
    place.kafka.create_topic(target)
    place.write(range(60))
    place.lose(60, range(20, 60))
    found = told(
        place,
        capsys,
        *AT_B,
        *WINDOW,
        "--rate",
        "20",
        "--state",
        str(place.state),
        "--to-topic",
        place.kafka.url(target),
    )
    assert found["sent"] == 40
    assert find_copies(place.read()) == []
    arrived_ms = [one.timestamp()[1] for one in place.read(target)]
    assert len(arrived_ms) == 40
    # 39 steps of 50 ms: the first one may wait for a connection, and a sender catches up with 0.2 s.
    assert arrived_ms[-1] - arrived_ms[0] >= 39 * 50 // 2
    began, ended = (datetime.fromisoformat(place.runs()[-1][name]) for name in ("began", "ended"))
    assert ended - began >= timedelta(seconds=39 * 0.05 - 0.2)


def test_a_topic_that_takes_no_message_is_told(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the cause; with the same state the message goes once the topic takes it."""
    target = f"{place.topic}-target"
    place.kafka.create_topic(target, 1, {"max.message.bytes": "500"})
    place.write(range(9))
    place.write([9], value=random.Random(7).randbytes(10_000))
    place.lose(10, [9])
    flags = (*AT_B, *WINDOW, "--rate", "20", "--state", str(place.state), "--to-topic", place.kafka.url(target))
    capsys.readouterr()
    assert place.workspace.run("redrive", *flags) == 3
    error = capsys.readouterr().err
    assert "1 messages were not taken by the topic: " in error
    assert error.endswith(": mend it, then start again with the same --state\n")


def test_a_topic_that_is_not_there_is_told(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """The one to read from and the one to write to; nothing is sent."""
    place.write(range(10))
    place.lose(10, [9])
    assert place.workspace.run("redrive", *place.flags(*WINDOW, "--to-topic", place.kafka.url("nowhere"))) == 3
    told_of = "the topic nowhere cannot be written: Broker: Unknown topic or partition"
    assert f"hopwatch: {told_of}: create it, or name another one, then start again" in capsys.readouterr().err
    place.workspace.configure(place.workspace.config.read_text().replace(place.topic, "nowhere"))
    place.state = place.state.with_name("another")
    assert place.workspace.run("redrive", *place.flags(*WINDOW)) == 3
    assert "the topic nowhere at" in capsys.readouterr().err


def test_a_redrive_goes_on_after_kills(
    place: Place, capsys: pytest.CaptureFixture[str], times: Callable[[int, int], int]
) -> None:
    """Each message is sent at least once, each that was sent twice is reported; a stop repeats what nobody answered."""
    place.write(range(700))
    place.lose(700, range(100, 700))
    flags = (*AT_B, *WINDOW, "--state", str(place.state))
    command = ["hopwatch", "redrive", "--config", str(place.workspace.config), *flags, "--rate", "20"]
    chance = random.Random(1)

    def start() -> Program:
        before = count_records(place)
        process = Program(command, folder=ROOT)
        until(lambda: count_records(place) >= before + 10 or process.poll() is not None, "the first copies", 60)
        assert process.poll() is None, process.communicate()
        time.sleep(chance.random() / 10)
        return process

    kills = times(1, 20)
    for _ in range(kills):
        killed = start()
        killed.kill()
        killed.communicate()
    # A copy that a killed run sent is now the last record of its message, which the next run may not come to.
    of_kills = place.find_in_doubt()
    stopped = start()
    signalled_s = time.monotonic()
    stopped.send_signal(signal.SIGTERM)
    said, _ = stopped.communicate(timeout=PATIENCE_S)
    took_s = time.monotonic() - signalled_s
    assert stopped.returncode == 1
    assert b"stopped before the end: start again with the same --state" in said
    stopped_run = place.runs()[-1]
    assert stopped_run["stopped"]
    found = told(place, capsys, *flags, "--rate", "10000")
    # A stop does not wait longer for a broker on a machine that is busy.
    assert {one["id"] for one in found["repeated"]} <= of_kills or took_s >= sender._STOP_S
    copies = Counter(message_id for message_id, _ in find_copies(place.read()))
    assert set(copies) == {name_id(number) for number in range(100, 700)}
    repeated = sum(count > 1 for count in copies.values())
    reported = stopped_run["repeated"] + len(found["repeated"])
    assert repeated <= reported <= repeated + (kills + 1) * 5
    assert [("ended" in run) for run in place.runs()] == [False] * (kills + 1) + [True, False, True]
