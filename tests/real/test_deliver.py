"""``hopwatch deliver`` on a real broker, to receivers that fail: each message ends delivered or rejected, once."""

from __future__ import annotations

import base64
import io
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from pathlib import Path as Folder
from typing import Final
from urllib.request import urlopen

import orjson
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from prometheus_client.parser import text_string_to_metric_families
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from hopwatch import Probe
from hopwatch.alerts.channels.channel import Accepted
from hopwatch.alerts.channels.routing import open_routing
from hopwatch.alerts.events import Event
from hopwatch.cli.main import main
from hopwatch.deliver import kafka_source
from hopwatch.gate.records import RejectedRecord, decode_rejected
from hopwatch.monitor.settings import load
from hopwatch.probes.contract.batch import BatchKind, Outcome
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from servers.kafka import Kafka
from servers.process import PATIENCE_S, answers, free_ports, until
from tests.real.deliveries import PARTITIONS, RUN, DeliveryPlace
from tests.real.receivers import Answer, HttpSink
from tests.support.deliveries import NOW_US, delivery, firing
from tests.support.http_receiver import answers as answers_with
from tests.support.http_receiver import certificate, receiving
from tests.support.probe_host import ROOT, rows, spooled
from tests.support.program import run_program

Build = Callable[..., tuple[DeliveryPlace, HttpSink]]
IDS: Final = [f"m{number}" for number in range(200)]


@pytest.fixture
def build(kafka: Kafka, request: pytest.FixtureRequest, tmp_path: Folder) -> Iterator[Build]:
    """Yield a function that makes a delivery of the test's own, and its receiver."""
    with ExitStack() as stack:

        def make(answer: Answer | None = None, *keys: str) -> tuple[DeliveryPlace, HttpSink]:
            receiver = stack.enter_context(HttpSink(answer).serving())
            topic = str(request.node.name).replace("[", "-").replace("]", "")[:120]
            place = DeliveryPlace(kafka, topic, tmp_path, receiver.url, *keys)
            place.create_topics()
            return place, receiver

        yield make


def test_all_is_delivered_and_stamped(build: Build) -> None:
    """Once, in batches; nothing waits any more, its stamps are complete, and the next process sends nothing again."""
    place, receiver = build()
    place.send(IDS)
    with place.running() as process:
        until(lambda: len(receiver.acknowledged) == len(IDS), f"all is delivered: {place.said()}")
        place.await_drained()
        counts = place.stop(process)
    assert counts == {"polled": len(IDS), "delivered": len(IDS), "rejected": 0, "deferred": 0}
    assert set(receiver.acknowledged.values()) == {1}
    assert max(receiver.batches) > 10
    assert [batches[-1].kind for batches in spooled(place.spool).values()] == [BatchKind.BYE]
    stamped = [row for batches in spooled(place.spool).values() for row in rows(batches)]
    assert {row.message_id for row in stamped} == {id_bytes(one) for one in IDS}
    with place.running() as process:
        until(lambda: place.said().count("delivering ") == 2, "it runs again")
        place.send(["later"])
        until(lambda: "later" in receiver.acknowledged, "it goes on")
        place.stop(process)
    assert set(receiver.acknowledged.values()) == {1}


def test_what_a_receiver_refuses_is_rejected_once(build: Build) -> None:
    """With its status, the answer and its place; it is stamped so, sent once, and what is behind it goes on."""
    place, receiver = build(lambda ids, _: 404 if "bad" in ids else 200, "batch = 1")
    place.send(["a", "bad", "b"], partition=0)
    with place.running() as process:
        until(lambda: len(receiver.acknowledged) == 2, "the others are delivered")
        until(lambda: "bad" in place.rejected(), "it is rejected")
        place.await_drained()
        assert place.stop(process) == {"polled": 3, "delivered": 2, "rejected": 1, "deferred": 0}
    assert receiver.statuses["bad"] == [404]
    one = place.rejected()["bad"]
    assert [fault.detail for fault in one.reasons] == ["HTTP 404 Not Found", "the receiver's answer: refused here"]
    assert (one.stream, one.producer, one.data) == ("orders", f"{place.topic}/0/1", b'{"order":"bad"}')
    (record,) = place.read(f"{place.topic}.rejected")
    assert record.key() == b"bad"
    assert {"team": b"blue", "hopwatch-delivery": b"billing"}.items() <= dict(record.headers() or []).items()
    stamped = [row for batches in spooled(place.spool).values() for row in rows(batches) if row.outcome == 2]
    assert {row.message_id for row in stamped} == {id_bytes("bad")}


def test_what_fails_for_a_while_comes_back_through_retry_topics(build: Build) -> None:
    """After two tries it waits; the retrier sends it when its time has come, and its headers say how often it was."""
    place, receiver = build(lambda _, before: 500 if before < 5 else 200, "batch = 1", "parallel = 1")
    place.send(["late"])
    with place.running() as process, place.running("retrier") as retrier:
        until(lambda: "late" in receiver.acknowledged, f"it is delivered in the end: {place.said()}")
        place.await_drained()
        assert place.stop(process) == {"polled": 1, "delivered": 0, "rejected": 0, "deferred": 1}
        assert place.stop(retrier) == {"polled": 2, "delivered": 1, "rejected": 0, "deferred": 1}
    assert receiver.statuses["late"] == [500] * 5 + [200]
    (first,) = place.read(f"{place.topic}.billing.retry.1s")
    (second,) = place.read(f"{place.topic}.billing.retry.3s")
    for waited, tries in ((first, b"2"), (second, b"4")):
        headers = dict(waited.headers() or [])
        assert (headers["hopwatch-tries"], headers["team"], waited.key()) == (tries, b"blue", b"late")
    assert dict(first.headers() or [])["hopwatch-first-sent"] == dict(second.headers() or [])["hopwatch-first-sent"]
    assert place.rejected() == {}
    sides = [row for batches in spooled(place.spool).values() for row in rows(batches)]
    passed = [row for row in sides if row.outcome == Outcome.PASSED]
    assert sum(row.in_us is not None for row in passed) == sum(row.out_us is not None for row in passed) == 1
    assert sum(row.outcome == Outcome.DEFERRED for row in sides) == 2


def test_what_fails_for_too_long_is_rejected_as_expired(build: Build) -> None:
    """By the retrier, after the last try."""
    place, receiver = build(lambda *_: 503, 'max_age = "2s"')
    place.send(["old"])
    with place.running() as process, place.running("retrier") as retrier:
        until(lambda: "old" in place.rejected(), f"it is given up: {place.said()}")
        place.await_drained()
        place.stop(process)
        place.stop(retrier)
    assert place.rejected()["old"].reasons[0].detail.startswith("expired: HTTP 503")
    assert receiver.acknowledged == {}


def test_poison_is_set_aside(build: Build) -> None:
    """No value, a bad event time, no JSON: each is rejected with its reason, never sent, and blocks nothing."""
    place, receiver = build()
    place.send(["empty"], partition=0)
    place.producer.produce(place.topic, None, headers=[("hopwatch-id", "gone")], partition=0)
    place.send(["untimed"], partition=0, headers=[("hopwatch-id", "untimed"), ("hopwatch-time", "soon")])
    place.send(["text"], b"no JSON", partition=0)
    place.send(["last"], partition=0)
    with place.running() as process:
        until(lambda: "last" in receiver.acknowledged, "what is behind them is delivered")
        until(lambda: len(place.rejected()) == 3, "they are rejected")
        place.await_drained()
        assert place.stop(process) == {"polled": 5, "delivered": 2, "rejected": 3, "deferred": 0}
    told = {one: record.reasons[0].detail for one, record in place.rejected().items()}
    assert told["gone"] == "the record has no value, and there is nothing to send"
    assert told["untimed"].startswith("the header hopwatch-time: ")
    assert told["text"].startswith("the value is no JSON")
    assert set(receiver.acknowledged) == {"empty", "last"}


def test_what_is_too_large_for_a_topic_blocks_nothing(
    build: Build, kafka: Kafka, request: pytest.FixtureRequest
) -> None:
    """Messages are rejected where they cannot wait, and cut short where even that is too large; the others wait."""
    topic = str(request.node.name)
    for narrow in (f"{topic}.billing.retry.1s", f"{topic}.rejected"):
        kafka.create_topic(narrow, PARTITIONS, {"max.message.bytes": "50000"})
    is_better, noise = threading.Event(), random.Random(1)
    place, receiver = build(lambda ids, _: 200 if ids == ["last"] or is_better.is_set() else 503, "batch = 1")
    place.send(["large"], b'"%b"' % base64.b64encode(noise.randbytes(300_000)), partition=0)
    place.send(["small"], partition=0)
    headers: list[tuple[str, str | bytes]] = [("hopwatch-id", "gone"), ("noise", noise.randbytes(900_000))]
    place.producer.produce(place.topic, None, headers=headers, key=noise.randbytes(60_000), partition=0)
    place.send(["last"], partition=0)
    with place.running() as process:
        until(lambda: len(place.read(f"{topic}.rejected")) == 2, f"what is too large is rejected: {place.said()}")
        until(lambda: len(place.read(f"{topic}.billing.retry.1s")) == 1, "the small one waits")
        until(lambda: "last" in receiver.acknowledged, "the last one is delivered")
        until(lambda: place.listed()["lag"] == 0, "all is settled")
        assert place.stop(process) == {"polled": 4, "delivered": 1, "rejected": 2, "deferred": 1}
    is_better.set()
    with place.running("retrier") as retrier:
        until(lambda: set(receiver.acknowledged) == {"small", "last"}, "the small one is delivered")
        place.stop(retrier)
    records = [decode_rejected(one.value() or b"") for one in place.read(f"{topic}.rejected")]
    found = {one.producer: one for one in records if isinstance(one, RejectedRecord)}
    large, gone = found[f"{topic}/0/0"], found[f"{topic}/0/2"]
    assert large.reasons[0].detail == f"HTTP 503 Service Unavailable: too large to wait in {topic}.billing.retry.1s"
    assert (len(large.data), large.owns_id, gone.owns_id) == (16_384, True, False)


def test_killed_under_load_nothing_is_lost(build: Build, times: Callable[[int, int], int]) -> None:
    """SIGKILL while a fifth of the requests fails, in a soak five times: each ends delivered, or rejected once."""
    chance, all_kills = random.Random(18), times(2, 5)
    every = [f"k{number}" for number in range(4_000 * all_kills)]
    bad = {one for one in every if int(one[1:]) % 200 == 7}

    def answer(ids: list[str], _: int) -> int:
        if bad.intersection(ids):
            return 422
        return 200 if chance.random() > 0.2 else chance.choice([500, 503, 0])

    place, receiver = build(answer, "batch = 1", "parallel = 64")
    sender = threading.Thread(target=place.send, args=(every,))
    sender.start()
    kills = 0
    with place.running("retrier") as retrier:
        while kills < all_kills:
            with place.running() as process:
                seen = receiver.requests
                until(lambda seen=seen: receiver.requests > seen + 1_500, "it delivers")  # type: ignore[misc]
                process.kill()
                kills += 1
        sender.join()
        with place.running() as process:
            until(
                lambda: set(receiver.acknowledged) | place.rejected().keys() == set(every),
                f"each has an end: {place.said()[-2_000:]}",
                patience_s=180,
            )
            place.await_drained()
            place.stop(process)
        place.stop(retrier)
    assert set(receiver.acknowledged) & bad == set()
    assert place.rejected().keys() == bad
    # Sent again is at most what was under way, or not settled yet, when a process was killed.
    assert sum(len(receiver.statuses[one]) - 1 for one in bad) <= kills * 64


def test_two_processes_share_the_partitions(build: Build) -> None:
    """Both deliver; the second one takes over some, and nothing is sent twice but what was under way."""
    place, receiver = build(None, "batch = 5")
    with place.running() as first:
        place.send([f"one{number}" for number in range(100)])
        until(lambda: len(receiver.acknowledged) == 100, "the first delivers all")
        with place.running() as second:
            until(lambda: len(place.shared()) == 2 and all(place.shared()), "both have partitions")
            place.send([f"two{number}" for number in range(300)])
            until(lambda: len(receiver.acknowledged) == 400, "all is delivered")
            place.await_drained()
            counts = [place.stop(one) for one in (second, first)]
    assert all(one["delivered"] for one in counts)
    assert sum(one["delivered"] for one in counts) == 400
    assert set(receiver.acknowledged.values()) == {1}


def test_a_process_without_partitions_holds_no_window_back(build: Build) -> None:
    """Of one more than there are partitions all complete moments: those that took some over, and the idle one."""
    place, receiver = build()
    with ExitStack() as stack:
        processes = [stack.enter_context(place.running()) for _ in range(PARTITIONS + 1)]
        place.send(IDS[:1])
        until(lambda: IDS[0] in receiver.acknowledged, "one delivers")
        spread = [0, *([1] * PARTITIONS)]
        until(lambda: sorted(map(len, place.shared())) == spread, "all but one have a partition")
        since_us = time.time_ns() // 1_000

        def completed() -> list[bool]:
            return [batches[-1].complete_through_us > since_us for batches in spooled(place.spool).values()]

        until(lambda: completed() == [True] * len(processes), "all complete moments")
        for process in processes:
            place.stop(process)
    assert {batches[-1].kind for batches in spooled(place.spool).values()} == {BatchKind.BYE}


def test_missing_topics_are_told_with_what_makes_them(build: Build) -> None:
    """One line each, exit code 3; the message topic is its owner's."""
    place, _ = build()
    for topic, advice in (
        (f"{place.topic}.billing.retry.1s", "make it with 'hopwatch deliver create-topics billing'"),
        (f"{place.topic}.rejected", "make it with 'hopwatch deliver create-topics billing'"),
        (place.topic, "make it, or correct from of [deliver.billing]"),
    ):
        place.kafka.delete_topic(topic)
        with place.running() as process:
            assert process.wait(PATIENCE_S) == 3
        last = place.said().splitlines()[-1]
        assert last == f"hopwatch: the topic {topic} is not on {place.kafka.bootstrap}: {advice}"


def test_a_weak_topic_is_refused_unless_it_is_allowed(build: Build) -> None:
    """As a topic of observations is: one copy, one that acknowledges."""
    place, _ = build()
    asked = [*RUN, "--config", str(place.config)]
    done = run_program(asked, folder=ROOT, timeout=PATIENCE_S)
    assert done.returncode == 3
    told = f"hopwatch: the topic {place.topic} has replication 1: a broker that dies takes data along: make it with"
    assert done.stderr.startswith(f"{told} replication 3, or pass --allow-weak")


def test_a_paused_delivery_takes_nothing_until_it_goes_on(build: Build) -> None:
    """Over a restart, too; drained, it is paused and nothing waits."""
    place, receiver = build()
    asked = ["--config", str(place.config)]
    with place.running() as process:
        place.send(["before"])
        until(lambda: "before" in receiver.acknowledged, "it delivers")
        assert main(["deliver", "pause", "billing", *asked]) == 0
        until(lambda: "billing is paused" in place.said(), "it hears of the pause")
        place.send(["meanwhile"])
        assert place.listed()["paused_since"] is not None
        place.stop(process)
    with place.running() as process:
        until(lambda: place.said().count("billing is paused") == 2, "it is paused still")
        until(lambda: sum(map(len, place.shared())) == PARTITIONS, "it has the partitions")
        assert place.listed()["lag"] == 1
        assert "meanwhile" not in receiver.acknowledged
        assert main(["deliver", "resume", "billing", *asked]) == 0
        until(lambda: "meanwhile" in receiver.acknowledged, "it goes on")
        assert main(["deliver", "drain", "billing", *asked]) == 0
        until(lambda: place.said().count("billing is paused") == 3, "it is paused once it is drained")
        found = place.listed()
        assert (found["lag"], found["retries"], found["paused_since"] is not None) == (0, 0, True)
        place.stop(process)
    assert main(["deliver", "resume", "billing", *asked]) == 0


def test_what_waits_for_a_paused_delivery_is_unknown_and_not_lost(build: Build) -> None:
    """While it waits, after a process that ends meanwhile, and until all is taken: then nothing is missing."""
    place, receiver = build()
    asked = ["--config", str(place.config)]
    short = 'path = "router -> deliver"\ntransit = "1s"\nsettle = "1s"'
    place.config.write_text(place.config.read_text().replace('path = "router -> deliver"', short))

    def judge() -> set[tuple[str, int, int]]:
        """Return of each window with messages its verdict, what is surely lost, and whether any is missing."""
        for path in place.folder.glob("hopwatch.db*"):
            path.unlink()
        assert main(["run", "--once", *asked]) == 0
        with redirect_stdout(io.StringIO()) as out:
            assert main(["report", "--json", *asked]) == 0
        windows = orjson.loads(out.getvalue())["streams"][0]["windows"]
        return {
            (one["verdict"], one["nodes"][1]["loss_lower"], one["nodes"][1]["loss"] > 0)
            for one in windows
            if one["known"]
        }

    with Probe("orders", "router", f"spool:{place.spool}") as probe:

        def send(ids: Sequence[str]) -> None:
            for one in ids:
                # Of a minute that is over: what is not taken within a second counts as missing.
                with probe.passing(one, event_us := time.time_ns() // 1_000 - 120_000_000):
                    place.send([one], headers=[(ID_HEADER, one), (TIME_HEADER, str(event_us))])
            assert probe.flush(10.0)

        with place.running() as process:
            send(IDS[:20])
            until(lambda: len(receiver.acknowledged) == 20, "it delivers")
            assert main(["deliver", "pause", "billing", *asked]) == 0
            until(lambda: "billing is paused" in place.said(), "it hears of the pause")
            send(IDS[20:40])
            time.sleep(kafka_source.BEHIND_US / 1e6 + 2)
            assert ("UNKNOWN", 0, True) in judge()
            place.stop(process)
        assert all(lower == 0 for _, lower, _ in judge())
        with place.running() as process:
            until(lambda: place.said().count("billing is paused") == 2, "it is paused still")
            assert main(["deliver", "resume", "billing", *asked]) == 0
            until(lambda: len(receiver.acknowledged) == 40, "it goes on")
            place.await_drained()
            place.stop(process)
    assert judge() == {("CLEAN", 0, False)}


def test_an_incident_pauses_a_delivery_until_its_end(build: Build) -> None:
    """By a channel that acts: the running process takes nothing while the incident lasts, and the list says whose."""
    place, receiver = build()
    acts = '[alerts.channels.stop]\nkind = "pause"\ndelivery = "billing"\nrules = ["rejected"]\n'
    place.config.write_text(place.config.read_text() + acts)
    channel = open_routing(load(place.config, flags={}, environ={})).channels["stop"]
    begin = firing(rule="rejected", key="rejected/ticket/orders")
    with place.running() as process:
        place.send(["before"])
        until(lambda: "before" in receiver.acknowledged, "it delivers")
        assert channel.send(delivery(begin), NOW_US) == Accepted()
        until(lambda: "billing is paused" in place.said(), "it hears of the pause")
        place.send(["meanwhile"])
        listed = place.listed()
        assert (listed["lag"], listed["paused_by"]) == (1, ["rejected/ticket/orders"])
        assert "meanwhile" not in receiver.acknowledged
        assert channel.send(delivery(replace(begin, event=Event.RESOLVED)), NOW_US) == Accepted()
        until(lambda: "meanwhile" in receiver.acknowledged, "it goes on")
        place.stop(process)
    assert place.listed()["paused_by"] == []


def test_what_was_rejected_is_listed_and_replayed(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    """Once the receiver takes it: by the retrier, with its key and headers, and listed no more; poison is refused."""
    takes = threading.Event()
    place, receiver = build(lambda ids, _: 200 if takes.is_set() or "bad" not in ids else 410)
    place.send(["bad"])
    place.send(["odd"], b"no JSON", headers=[("hopwatch-id", "odd"), ("hopwatch-time", "soon")])
    asked = ["--config", str(place.config), "--delivery", "billing"]
    with place.running() as process:
        until(lambda: len(place.rejected()) == 2, "both are rejected")
        place.stop(process)
    capsys.readouterr()
    assert main(["quarantine", "list", *asked, "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out)["rejected"] == 2
    takes.set()
    assert main(["quarantine", "replay", "--all", *asked, "--json"]) == 1
    told = orjson.loads(capsys.readouterr().out)
    assert (told["delivery"], told["replayed"], len(told["refused"])) == ("billing", 1, 1)
    assert "could not be read: let its sender send it again" in told["refused"][0]["reasons"][0]
    with place.running("retrier") as retrier:
        until(lambda: "bad" in receiver.acknowledged, f"it is delivered: {place.said()}")
        place.await_drained()
        place.stop(retrier)
    (waited,) = place.read(f"{place.topic}.billing.retry.1s")
    assert (waited.key(), dict(waited.headers() or [])["team"]) == (b"bad", b"blue")
    assert main(["quarantine", "list", *asked, "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out)["rejected"] == 1


def test_order_by_key_holds_over_a_rebalance(build: Build) -> None:
    """Two processes share, one is killed: of each key a message comes first only behind all before it."""
    chance = random.Random(7)

    def answer(*_: object) -> int:
        time.sleep(0.002)
        return 503 if chance.random() < 0.05 else 200

    place, receiver = build(answer, 'order = "key"', "batch = 4", "parallel = 8", "tries = 5")
    keys, each = 12, 100
    every = [f"{key}-{number}" for number in range(each) for key in range(keys)]

    def send(ids: list[str]) -> None:
        for one in ids:
            place.send([one], key=one.partition("-")[0].encode())

    with place.running() as first:
        send(every[:400])
        with place.running() as second:
            until(lambda: len(place.shared()) == 2 and all(place.shared()), "both have partitions")
            seen = len(receiver.order)
            send(every[400:800])
            until(lambda: len(receiver.order) > seen + 50, "both deliver")
            second.kill()
        send(every[800:])
        until(lambda: len(receiver.acknowledged) == len(every), f"all is delivered: {place.said()[-2_000:]}")
        place.await_drained()
        place.stop(first)
    arrived = list(dict.fromkeys(receiver.order))
    for key in range(keys):
        assert [one for one in arrived if one.startswith(f"{key}-")] == [f"{key}-{number}" for number in range(each)]
    assert place.rejected() == {}


def test_what_waits_in_hand_is_stamped_as_deferred(
    kafka: Kafka, request: pytest.FixtureRequest, tmp_path: Folder
) -> None:
    """In order by key a message waits as long as the receiver asks, with those of its key, and none is a loss."""
    with receiving(answers_with(503, Retry_After="60")) as receiver:
        place = DeliveryPlace(kafka, str(request.node.name), tmp_path, receiver.url(), 'order = "key"')
        place.create_topics()
        place.send(["first", "second"], key=b"k")
        with place.running() as process:
            until(lambda: bool(receiver.requests), f"the first one is sent: {place.said()}")
            place.stop(process)
    stamped = [row for batches in spooled(place.spool).values() for row in rows(batches)]
    deferred = {row.message_id for row in stamped if row.outcome == Outcome.DEFERRED}
    assert deferred == {id_bytes("first"), id_bytes("second")}


def test_a_receiver_verifies_requests_by_standard_webhooks(build: Build) -> None:
    """With the library of the standard: each request that it gets, and none that was changed or signed by another."""
    secret = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"
    place, receiver = build(None, f'secret = "{secret}"', "batch = 10")
    place.send(IDS[:50])
    with place.running() as process:
        until(lambda: len(receiver.acknowledged) == 50, f"all is delivered: {place.said()}")
        place.stop(process)
    ids = []
    for headers, body in receiver.received:
        ids += [one["id"] for one in Webhook(secret).verify(body, headers)]
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body.replace(b"order", b"0rder"), headers)
        with pytest.raises(WebhookVerificationError):
            Webhook(f"whsec_{base64.b64encode(bytes(32)).decode()}").verify(body, headers)
    assert sorted(ids) == sorted(IDS[:50])
    assert secret not in place.said()


def test_metrics_of_a_delivery_are_served(build: Build) -> None:
    """Its account balances, and requests, batches, the breaker and the retry backlog are those of what happened."""
    place, receiver = build(lambda ids, _: 500 if "late" in ids else 200, "batch = 1", 'retry = ["1h"]')
    (port,) = free_ports(1)
    page = f"http://127.0.0.1:{port}/metrics"

    def read() -> dict[str, float]:
        found = text_string_to_metric_families(urlopen(page, timeout=PATIENCE_S).read().decode())
        return {f"{one.name}{sorted(one.labels.items())}": one.value for family in found for one in family.samples}

    def value(name: str, **labels: str) -> float:
        return read().get(f"{name}{sorted(labels.items())}", 0.0)

    with place.running("--metrics-listen", f"127.0.0.1:{port}") as process:
        until(lambda: answers(port), "the page of metrics")
        place.send(["one", "late", "two"])
        until(lambda: value("hopwatch_delivery_retry_backlog_messages", delivery="billing") > 0, "the backlog is seen")
        of_stream = {"component": "delivery", "stream": "orders"}
        assert value("hopwatch_component_received_events_total", **of_stream) == 3
        assert value("hopwatch_component_emitted_events_total", **of_stream, output="receiver") == 2
        assert value("hopwatch_component_emitted_events_total", **of_stream, output="retry") == 1
        assert value("hopwatch_delivery_requests_total", delivery="billing", result="accepted") == 2
        assert value("hopwatch_delivery_requests_total", delivery="billing", result="failed") == 2
        assert value("hopwatch_delivery_batch_messages_count", delivery="billing") == 4
        assert value("hopwatch_delivery_breaker_state", delivery="billing", state="closed") == 1
        assert value("hopwatch_delivery_in_flight_requests", delivery="billing") == 0
        place.stop(process)
    assert set(receiver.acknowledged) == {"one", "two"}


class TlsKafka(Kafka):
    """Broker that takes clients by TLS alone; its certificate signs itself."""

    def __init__(self, folder: Folder, file: Folder) -> None:
        """Take its folder, and the file of its certificate and key."""
        stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(file)}
        ways = {"listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT"}
        super().__init__(folder, more=stores | trust | ways, listener="SSL")
        self.access = {"security.protocol": "SSL", "ssl.ca.location": str(file)}

    def admin(self) -> AdminClient:
        """Return a client by TLS."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0} | self.access)


def test_a_delivery_reaches_its_brokers_by_tls(tmp_path: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """With their authority it delivers, rejects and retries; without it, it ends with 3 and one line."""
    file = certificate(tmp_path)
    broker = TlsKafka(tmp_path / "kafka", file)
    try:
        broker.start(is_open=False)
        until(lambda: bool(broker.admin().list_topics(timeout=10).brokers), "the broker answers by TLS")
        takes = threading.Event()

        def answer(ids: list[str], _: int) -> int:
            return 404 if "bad" in ids else 500 if "late" in ids and not takes.is_set() else 200

        with HttpSink(answer).serving() as receiver:
            place = DeliveryPlace(broker, "orders", tmp_path, receiver.url, "batch = 1")
            place.producer = Producer({"bootstrap.servers": broker.bootstrap} | broker.access)
            place.send(["good", "bad", "late"])
            monkeypatch.setenv("HOPWATCH_TRANSPORT__KAFKA__SECURITY_PROTOCOL", "SSL")
            with place.running() as process:
                assert process.wait(PATIENCE_S) == 3
            assert place.said().count("Traceback") == 0
            monkeypatch.setenv("HOPWATCH_TRANSPORT__KAFKA__SSL_CA_FILE", str(file))
            place.create_topics()
            with place.running() as process, place.running("retrier") as retrier:
                until(lambda: len(receiver.statuses.get("late", [])) >= 2, f"it was tried: {place.said()}")
                takes.set()
                until(lambda: set(receiver.acknowledged) == {"good", "late"}, f"all is delivered: {place.said()}")
                place.await_drained()
                assert place.stop(process) == {"polled": 3, "delivered": 1, "rejected": 1, "deferred": 1}
                place.stop(retrier)
    finally:
        broker.stop()
