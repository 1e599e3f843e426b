"""Tests of channels that act: a command, and the pause of a delivery."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from hopwatch.alerts.channels.action_guard import ActionGuard
from hopwatch.alerts.channels.channel import Accepted, Failure
from hopwatch.alerts.channels.command import Command
from hopwatch.alerts.channels.delivery_pause import DeliveryBrokers, DeliveryPause
from hopwatch.alerts.events import Event
from hopwatch.deliver.control_topic import CONTROL_TOPIC, ControlReader, Pause, encode_pause
from hopwatch.monitor.settings.channels import CommandChannel, PauseChannel
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.taps.errors import TapSourceError
from tests.support.deliveries import NOW_US, delivery, firing
from tests.support.raw_producer import RawCluster, raw_cluster

BEGIN, END = delivery(firing()), delivery(firing(event=Event.RESOLVED))
KEY = BEGIN.notification.key


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 5), st.integers(1, 100))
def test_an_action_is_done_at_most_so_often_in_any_span(gaps: list[int], most: int, within_us: int) -> None:
    """An action that is refused would have been one too many, and none else is refused."""
    guard, done, now_us = ActionGuard(most, within_us), list[int](), 0
    for gap in gaps:
        now_us += gap
        recent = [at for at in done if at > now_us - within_us]
        refusal = guard.check(now_us)
        assert (refusal is None) == (len(recent) < most)
        if refusal is None:
            guard.note(now_us)
            done.append(now_us)


def command(*words: str, **more: Any) -> Command:  # noqa: ANN401 - settings
    """Return a channel that runs a command."""
    said = {"command": list(words), "rules": ["loss"], "timeout": "5s"} | more
    return Command("act", CommandChannel.model_validate(said))


def test_a_command_gets_the_notification_and_the_variables(tmp_path: Path) -> None:
    """The notification is on its standard input, and the environment says the same in short."""
    found = tmp_path / "found.json"
    code = (
        "import json, os, sys; names = 'EVENT KEY RULE STREAM'.split();"
        " said = [os.environ['HOPWATCH_' + name] for name in names];"
        f" open({str(found)!r}, 'w').write(json.dumps([said, json.load(sys.stdin)]))"
    )
    with capture_logs() as log:
        assert command(sys.executable, "-c", code).send(BEGIN, NOW_US) == Accepted()
    said, sent = json.loads(found.read_text())
    assert said == ["firing", KEY, "loss", "orders"]
    assert (sent["key"], sent["version"]) == (KEY, 1)
    assert [one["event"] for one in log] == ["the command was run"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("/nowhere/at-all",), "/nowhere/at-all cannot be run: No such file or directory"),
        (("sh", "-c", "echo secret >&2; exit 3"), "sh ended with 3"),
        (("sh", "-c", "sleep 60 & sleep 60"), "sh did not end within 0.3 s"),
    ],
)
def test_a_command_that_fails_is_run_again(words: tuple[str, ...], why: str) -> None:
    """A program that is missing, fails or hangs is a failure that is tried again; what it printed is not told."""
    begun_s = time.monotonic()
    assert command(*words, timeout="300ms").send(BEGIN, NOW_US) == Failure(why)
    assert time.monotonic() - begun_s < 10


def test_a_command_that_reads_nothing_is_no_failure() -> None:
    """A closed standard input does not matter."""
    assert command("true").send(BEGIN, NOW_US) == Accepted()


def test_a_command_is_run_so_often_and_then_left_to_a_person(tmp_path: Path) -> None:
    """Ends of incidents are always run, and a failure does not count."""
    found = tmp_path / "found"
    act = command("sh", "-c", f"echo $HOPWATCH_EVENT >> {found}", most=2, within="1m")
    outcomes = [act.send(one, NOW_US) for one in (BEGIN, END, BEGIN, BEGIN, END)]
    refused = Failure("it was not done: most = 2 within 60s is reached, and it is left to a person", is_for_good=True)
    assert outcomes == [Accepted(), Accepted(), Accepted(), refused, Accepted()]
    assert found.read_text().split() == ["firing", "resolved", "firing", "resolved"]
    assert act.send(BEGIN, NOW_US + 60_000_000) == Accepted()


def test_a_dry_run_runs_nothing(tmp_path: Path) -> None:
    """Only the log says what would have been run."""
    with capture_logs() as log:
        assert command("touch", str(tmp_path / "x"), dry_run=True).send(BEGIN, NOW_US) == Accepted()
    assert [one["event"] for one in log] == ["the command would be run"]
    assert not (tmp_path / "x").exists()


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[RawCluster]:
    """Return a broker."""
    with raw_cluster() as cluster:
        yield cluster


class PausePlace:
    """A delivery of a name of its own, and the channel that pauses it."""

    def __init__(self, cluster: RawCluster, name: str, **more: Any) -> None:  # noqa: ANN401 - settings
        """Begin with no pause; a control topic without a record cannot be read here."""
        self.name, self.brokers = name, cluster.brokers
        said = {"delivery": name, "rules": ["loss"]} | more
        brokers = DeliveryBrokers({name: self.brokers}, KafkaAccess())
        self.channel = DeliveryPause("stop", PauseChannel.model_validate(said), brokers)
        self.write(None)

    def write(self, pause: Pause | None) -> None:
        """Write a pause, or its end, as a person does."""
        producer = Producer({"bootstrap.servers": self.brokers, "log_level": 0})
        producer.produce(CONTROL_TOPIC, None if pause is None else encode_pause(pause), self.name.encode())
        assert producer.flush(20) == 0

    def pause(self) -> Pause | None:
        """Return the pause that is in force."""
        reader = ControlReader(self.brokers, KafkaAccess(), print)
        reader.open()
        try:
            return reader.pauses.get(self.name)
        finally:
            reader.close()


def test_a_delivery_is_paused_while_an_incident_lasts(cluster: RawCluster) -> None:
    """The beginning twice is one pause, and the end twice one end: a notification may come twice."""
    place = PausePlace(cluster, "billing")
    assert [place.channel.send(BEGIN, NOW_US + at) for at in (0, 5)] == [Accepted()] * 2
    assert place.pause() == Pause(NOW_US, (KEY,))
    assert [place.channel.send(END, NOW_US) for _ in range(2)] == [Accepted()] * 2
    assert place.pause() is None


def test_a_pause_lasts_as_long_as_any_of_its_incidents(cluster: RawCluster) -> None:
    """A second incident that begins meanwhile holds it, too, and does not count as one more pause."""
    place = PausePlace(cluster, "two", most=1)
    other = firing(key="loss/page/refunds")
    outcomes = [place.channel.send(one, NOW_US) for one in (BEGIN, delivery(other), END)]
    assert outcomes == [Accepted()] * 3
    assert place.pause() == Pause(NOW_US, (other.key,))
    assert place.channel.send(delivery(replace(other, event=Event.RESOLVED)), NOW_US) == Accepted()
    assert place.pause() is None


def test_a_pause_that_could_not_be_written_does_not_count(cluster: RawCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that are away use up no chance."""
    place = PausePlace(cluster, "away", most=1)

    def fail(*_: object) -> None:
        raise TapSourceError("away")

    with monkeypatch.context() as patched:
        patched.setattr("hopwatch.alerts.channels.delivery_pause.write_pause", fail)
        assert [place.channel.send(BEGIN, NOW_US) for _ in range(3)] == [Failure("away")] * 3
    assert place.channel.send(BEGIN, NOW_US) == Accepted()
    assert place.pause() == Pause(NOW_US, (KEY,))


def test_the_pause_of_a_person_stays(cluster: RawCluster) -> None:
    """Made before the incident or while it lasts, its end does not end it."""
    place = PausePlace(cluster, "person")
    place.write(Pause(1))
    assert place.channel.send(BEGIN, NOW_US) == place.channel.send(END, NOW_US) == Accepted()
    assert place.pause() == Pause(1)
    place.write(None)
    assert place.channel.send(BEGIN, NOW_US) == Accepted()
    place.write(Pause(2))
    assert place.channel.send(END, NOW_US) == Accepted()
    assert place.pause() == Pause(2)


def test_a_pause_that_flaps_is_left_to_a_person(cluster: RawCluster) -> None:
    """A pause that was made before is ended all the same."""
    place = PausePlace(cluster, "flaps", most=1)
    outcomes = [place.channel.send(one, NOW_US) for one in (BEGIN, END, BEGIN)]
    assert outcomes[2] == Failure(
        "it was not done: most = 1 within 3600s is reached, and it is left to a person", is_for_good=True
    )
    assert place.pause() is None


def test_tests_of_channels_and_dry_runs_pause_nothing(cluster: RawCluster) -> None:
    """A test is of a rule that the channel does not act for."""
    place = PausePlace(cluster, "test")
    assert place.channel.send(delivery(firing(rule="test")), NOW_US) == Accepted()
    assert place.pause() is None
    dry = PausePlace(cluster, "dry", dry_run=True)
    with capture_logs() as log:
        assert dry.channel.send(BEGIN, NOW_US) == Accepted()
    assert [(one["event"], one["is_dry_run"]) for one in log] == [("the delivery is paused", True)]
    assert dry.pause() is None


def test_brokers_that_do_not_answer_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause is tried again."""
    monkeypatch.setattr("hopwatch.deliver.control_topic.ANSWER_S", 0.3)
    said = PauseChannel.model_validate({"delivery": "a", "rules": ["loss"]})
    channel = DeliveryPause("stop", said, DeliveryBrokers({"a": "127.0.0.1:1"}, KafkaAccess()))
    outcome = channel.send(BEGIN, NOW_US)
    assert isinstance(outcome, Failure)
    assert outcome.why.startswith("the topic hopwatch.deliveries at 127.0.0.1:1 cannot be read: ")
    assert not outcome.is_for_good
