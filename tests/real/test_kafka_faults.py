"""Tests of a topic with trouble: records that age out, poison, batches that come twice, a backlog, passwords."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from hopwatch.monitor.spark import connector
from hopwatch.monitor.spark.sources.kafka import FIRST_RECORDS_PER_TRIGGER
from hopwatch.monitor.store import dialect
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import encode
from servers.kafka import LOG_APPEND, Kafka
from tests.real.monitor_process import Monitor, minute_of, windows_of
from tests.real.program_folder import Workplace
from tests.support.examples import soak_after
from tests.support.report import known_in


def produce(kafka: Kafka, topic: str, values: list[bytes], partition: int = 0) -> None:
    """Send records as they are, one after the other."""
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "acks": "all", "message.max.bytes": 6_000_000, "log_level": 0}
    )
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(60) == 0


def said(
    now_us: int, seq: int, kind: BatchKind, numbers: Sequence[int] = (), node: str = "a", probe: str = "p"
) -> bytes:
    """Return a record of a probe at a node of the stream ``orders``."""
    window_ms = now_us // 60_000_000 * 60_000
    count = len(numbers)
    offsets = b"".join((now_us - window_ms * 1_000).to_bytes(4, "little") for _ in numbers)
    lags = bytes(8 * count)
    batch = Batch(
        probe, now_us - 1_000_000, seq, kind, "orders", node, window_ms, now_us, now_us, count=count,
        message_ids=b"".join(number.to_bytes(16, "big") for number in numbers), event_offset_us=offsets,
        lag_in_us=lags, lag_out_us=lags,
    )  # fmt: skip
    return encode(batch)


def test_poison_among_good_records_is_set_aside_with_its_place(kafka: Kafka, tmp_path: Path) -> None:
    """Good processed 100 %, set aside = injected, with topic, partition and offset; the job goes on."""
    kafka.create_topic("poison", config={**LOG_APPEND, "max.message.bytes": "6000000"})
    now_us = time.time_ns() // 1_000
    good = [said(now_us, seq, BatchKind.OBSERVATIONS, [seq]) for seq in range(4)]
    poison = {1: b"\x82" + good[0][1:], 2: good[0][:1] + bytes(32) + good[0][33:], 4: good[1][:-2], 5: bytes(5_000_000),
              7: os.urandom(300)}  # fmt: skip
    values = iter(good)
    produce(kafka, "poison", [poison.get(offset) or next(values) for offset in range(9)])
    work = Workplace(tmp_path, kafka.url("poison"))
    monitor = Monitor(work).start()
    monitor.until(lambda: known_in(work.store_url) == 4, "all that is good")
    produce(kafka, "poison", [said(now_us, 4, BatchKind.OBSERVATIONS, [4])])
    monitor.until(lambda: known_in(work.store_url) == 5, "what is good after all the poison")
    monitor.stop()
    report = work.report()
    assert sum(report["accounts"]["set_aside"].values()) == len(poison)
    with dialect.create_engine(f"sqlite:///{tmp_path / 'store.db'}").begin() as connection:
        rows = connection.exec_driver_sql("select path, position from set_aside order by position").all()
    assert [tuple(row) for row in rows] == [("poison/0", offset) for offset in poison]
    assert "aged_out" not in report["accounts"]


BACKLOG: Final = 24_000
"""Records that a monitor which reads 2,000 of them in each trigger of five seconds would have read after a minute."""


def read_plans(checkpoint: Path) -> list[int]:
    """Return up to which offset each micro-batch was to read, of those that Spark remembers; of one partition."""
    logs = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [json.loads(log.read_text().splitlines()[2])["backlog"]["0"] for log in logs]


def test_triggers_read_more_of_a_backlog_while_they_have_time(kafka: Kafka, tmp_path: Path) -> None:
    """By default: of many small records a trigger reads more than the first one did; each is counted once."""
    kafka.create_topic("backlog")
    now_us = time.time_ns() // 1_000
    produce(kafka, "backlog", [said(now_us, seq, BatchKind.OBSERVATIONS, [seq]) for seq in range(BACKLOG)])
    work = Workplace(tmp_path, kafka.url("backlog"))
    monitor = Monitor(work).start()
    monitor.until(lambda: known_in(work.store_url) == BACKLOG, "all of the backlog")
    monitor.stop()
    ends = read_plans(tmp_path / "work" / "checkpoint")
    assert max(end - start for start, end in pairwise(ends)) > 2 * FIRST_RECORDS_PER_TRIGGER, ends
    accounts = work.report()["accounts"]
    assert (accounts["observations"], accounts["duplicate_batches"]) == (BACKLOG, 0)


@pytest.mark.parametrize("is_restarted", soak_after(1, [False, True]), ids=["suspended", "restarted"])
def test_records_that_aged_out_are_a_hole_with_partition_and_offsets(
    kafka: Kafka, tmp_path: Path, *, is_restarted: bool
) -> None:
    """The job goes on, and the windows that may have been in it are UNKNOWN, though no account shows it."""
    topic = f"aged-{is_restarted}"
    short = {**LOG_APPEND, "retention.ms": "3600000", "segment.ms": "1000", "segment.bytes": "1048576"}
    kafka.create_topic(topic, config=short)
    now_us = time.time_ns() // 1_000
    produce(
        kafka,
        topic,
        [said(now_us, 0, BatchKind.OBSERVATIONS, [1, 2]), said(now_us, 0, BatchKind.OBSERVATIONS, [1, 2], "b")],
    )
    work = Workplace(tmp_path, kafka.url(topic))
    monitor = Monitor(work).start()
    monitor.until(lambda: bool(windows_of(work.reported())), "the first window")
    assert monitor.process is not None
    if is_restarted:
        monitor.stop()
    else:
        # With its JVM, which may be about to read.
        os.killpg(monitor.process.pid, signal.SIGSTOP)
    # Another instance of b speaks while nobody reads, and all it said ages out.
    unread = said(now_us, 0, BatchKind.OBSERVATIONS, [3], "b", "q")
    # A request that the monitor sent before it was stopped may still be answered with what comes first.
    produce(kafka, topic, [unread])
    produce(kafka, topic, [unread] * 5)
    kafka.age_out(topic)
    now_us = time.time_ns() // 1_000
    produce(kafka, topic, [said(now_us, 1, BatchKind.BYE), said(now_us, 1, BatchKind.BYE, node="b")])
    if is_restarted:
        monitor.start()
    else:
        os.killpg(monitor.process.pid, signal.SIGCONT)
    monitor.until(lambda: "aged_out" in work.reported()["accounts"], "the hole")
    report = monitor.until_judged(minute_of(now_us / 1e6))
    monitor.stop()
    # A batch that the stop cut short is read again, and has a hole of its own.
    holes = report["accounts"]["aged_out"]
    assert {hole["partition"] for hole in holes} == {f"{topic}/0"}
    assert sum(hole["to_offset"] - hole["from_offset"] + 1 for hole in holes) >= 5
    assert {window["verdict"] for window in windows_of(report)} == {"UNKNOWN"}


@pytest.mark.soak  # tests/monitor/spark knows its offsets by default
def test_a_topic_that_was_made_anew_is_refused(kafka: Kafka, tmp_path: Path) -> None:
    """Its offsets say nothing of what was read of the old one: exit 3 and one line; --begin-anew reads it all."""
    kafka.create_topic("again")
    produce(kafka, "again", [said(time.time_ns() // 1_000, 0, BatchKind.OBSERVATIONS, [1])])
    work = Workplace(tmp_path, kafka.url("again"))
    monitor = Monitor(work).start()
    monitor.until(lambda: bool(windows_of(work.reported())), "the first window")
    monitor.stop()
    kafka.delete_topic("again")
    kafka.create_topic("again")
    produce(kafka, "again", [said(time.time_ns() // 1_000, 0, BatchKind.OBSERVATIONS, [2, 3])] * 60)
    refused = work.run("run")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (3, 1), refused.stderr
    assert refused.stderr.startswith("hopwatch: the store was written from another topic: again, id ")
    monitor.start("--begin-anew")
    monitor.until(lambda: known_in(work.store_url) == 2, "the new messages")
    monitor.stop()


@pytest.mark.soak  # laws deliver twice by default
def test_a_batch_that_is_delivered_twice_counts_once(kafka: Kafka, tmp_path: Path) -> None:
    """Told by its instance and number, in whatever partition the copy is."""
    kafka.create_topic("twice", 2)
    now_us = time.time_ns() // 1_000
    records = [said(now_us, seq, BatchKind.OBSERVATIONS, [seq], node) for seq in range(5) for node in "ab"]
    byes = [said(now_us, 5, BatchKind.BYE, node=node) for node in "ab"]
    for partition in (0, 1):
        produce(kafka, "twice", [*records, *byes], partition)
    work = Workplace(tmp_path, kafka.url("twice"))
    assert work.run("run", "--once").returncode == 0
    report = work.report()
    (window,) = [window for window in windows_of(report) if window["known"]]
    assert (window["verdict"], window["known"], window["delivered"]) == ("CLEAN", 5, 5)
    assert [(one["duplicates_in"], one["duplicates_out"]) for one in window["nodes"]] == [(0, 0), (0, 0)]
    assert report["accounts"]["duplicate_batches"] == 12


@pytest.mark.soak  # the laws of implausible times run by default
def test_clocks_that_are_wrong_cost_no_good_row(kafka: Kafka, tmp_path: Path) -> None:
    """One host 70 years ahead, another an hour behind: what they say of impossible windows is counted apart."""
    kafka.create_topic("clocks")
    now_us = time.time_ns() // 1_000
    ahead_us = now_us + 70 * 365 * 86_400_000_000
    records = [said(now_us, 0, BatchKind.OBSERVATIONS, list(range(50)), node) for node in "ab"]
    records += [
        said(ahead_us, 0, BatchKind.OBSERVATIONS, [99]),
        said(now_us - 3_600_000_000, 0, BatchKind.OBSERVATIONS, [98]),
    ]
    produce(kafka, "clocks", records)
    work = Workplace(tmp_path, kafka.url("clocks"))
    assert work.run("run", "--once").returncode == 0
    report = work.report()
    known = {window["window_start"]: window["known"] for window in windows_of(report)}
    assert known[minute_of(now_us / 1e6)] == 50
    assert report["accounts"]["implausible"] == 1
    assert sum(known.values()) == 51


@pytest.mark.soak  # test_taps.py gives a wrong password by default
def test_a_wrong_password_is_told_without_it(kafka_with_passwords: Kafka, tmp_path: Path) -> None:
    """Exit 3 and one line; with the right one, from a file, probe, monitor and its pulse are let in."""
    kafka = kafka_with_passwords
    (tmp_path / "secret").write_text("right-horse\n")
    access = 'security_protocol = "SASL_PLAINTEXT"\nsasl_mechanism = "PLAIN"\nsasl_username = "hopwatch"'
    right = f'[transport.kafka]\n{access}\nsasl_password_file = "{tmp_path / "secret"}"'
    wrong = f'[transport.kafka]\n{access}\nsasl_password = "wrong-horse"'
    made = Workplace(tmp_path / "right", kafka.url("locked"), more=right).run(
        "topics", "create", "--allow-weak", "--replication", "1", "--min-insync", "1"
    )
    assert made.returncode == 0, made.stderr
    refused = Workplace(tmp_path / "wrong", kafka.url("locked"), more=wrong).run("run", "--once")
    assert refused.returncode == 3
    assert refused.stderr.startswith(f"hopwatch: the Kafka brokers {kafka.bootstrap} cannot be reached: ")
    assert "uthentication fail" in refused.stderr
    assert "horse" not in refused.stderr
    work = Workplace(tmp_path / "right", kafka.url("locked"), more=right)
    stamped = work.python(
        "import os, time\nfrom hopwatch import Probe\n"
        f"with Probe('orders', 'a', {kafka.url('locked')!r}, strict=True) as probe:\n"
        "    probe.arrived(1, time.time_ns() // 1000)\n    assert probe.flush(30)\n",
        HOPWATCH_TRANSPORT__KAFKA__SECURITY_PROTOCOL="SASL_PLAINTEXT",
        HOPWATCH_TRANSPORT__KAFKA__SASL_MECHANISM="PLAIN",
        HOPWATCH_TRANSPORT__KAFKA__SASL_USERNAME="hopwatch",
        HOPWATCH_TRANSPORT__KAFKA__SASL_PASSWORD_FILE=str(tmp_path / "secret"),
    )
    assert stamped.returncode == 0, stamped.stderr
    assert work.run("run", "--once").returncode == 0
    report = work.report()
    assert sum(window["known"] for window in windows_of(report)) == 1
    # Of the stream the environment says nothing: only hopwatch.toml lets the pulse in.
    watched = Workplace(tmp_path / "watched", kafka.url("locked"), more=right)
    monitor = Monitor(watched).start()
    pulses = report["accounts"]["records"] + 3
    monitor.until(lambda: watched.reported()["accounts"]["records"] >= pulses, "the pulse")
    monitor.stop()


NO_REPOSITORY = """<ivysettings><settings defaultResolver="none"/><resolvers>
<filesystem name="none"><artifact pattern="/nowhere/[artifact].jar"/></filesystem></resolvers></ivysettings>"""


def test_a_connector_that_is_missing_is_told(kafka: Kafka, tmp_path: Path) -> None:
    """No jars beside the program, and no repository to fetch them from: exit 3, and one line with what to do."""
    kafka.create_topic("unread")
    (tmp_path / "ivy.xml").write_text(NO_REPOSITORY)
    asked = f'"spark.jars" = ""\n"spark.jars.packages" = "{connector.PACKAGES}"'
    more = f'[monitor.spark]\n{asked}\n"spark.jars.ivySettings" = "{tmp_path / "ivy.xml"}"'
    # Of what was fetched before, by whomever, nothing is there either.
    more += f'\n"spark.jars.ivy" = "{tmp_path / "ivy"}"'
    done = Workplace(tmp_path, kafka.url("unread"), more=more).run("run", "--once")
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1), done.stderr
    assert done.stderr.startswith("hopwatch: Spark cannot fetch org.apache.spark#spark-sql-kafka-0-10_2.13;")
    assert f"or put the jars into {connector.JARS}; its log is " in done.stderr


@pytest.fixture
def kafka_with_passwords(tmp_path: Path) -> Iterator[Kafka]:
    """Yield a broker that lets nobody in without a password."""
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    more = {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": (
            f'{login} username="hopwatch" password="right-horse" user_hopwatch="right-horse";'
        ),
    }
    locked = Kafka(tmp_path / "kafka", more=more, listener="CLIENT")
    try:
        locked.start(is_open=False)
        yield locked
    finally:
        locked.stop()
