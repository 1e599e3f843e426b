"""Tests of what a topic of observations needs: what is told of one that lacks it, who minds, and what to do."""

from __future__ import annotations

from concurrent.futures import Future
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException

from hopwatch.monitor import topics
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.topics import TopicDescription, find_problems
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace

PLACE = KafkaPlace("host:9092", "t")
GOOD = topics.build_config(2, 168)
ALTER = "mend it with 'kafka-configs.sh --bootstrap-server host:9092 --entity-type topics --entity-name t --alter"
ONE_ACKNOWLEDGES = "the topic t has min.insync.replicas=1: what one broker has acknowledged may die with it"
NONE_CAN = "the topic t has min.insync.replicas=2 and replication 1, and takes no record"
WEAK, UNWRITABLE, UNREADABLE = (True, True), (False, True), (False, False)


def told(config: dict[str, str] | None = None, replication: int = 3) -> list[tuple[str, tuple[bool, bool]]]:
    """Return what is told of a topic with these settings, and who minds: ``WEAK``, ``UNWRITABLE`` or ``UNREADABLE``."""
    found = find_problems(PLACE, TopicDescription(6, replication, GOOD | (config or {})))
    return [(str(one), (one.is_weak, one.is_readable)) for one in found]


def test_a_topic_as_it_is_made_will_do() -> None:
    """Nothing is wrong with it, and one that keeps records for ever is no worse."""
    assert told() == told({"retention.ms": "-1"}) == told({"retention.ms": "3600000"}) == []


@pytest.mark.parametrize(
    ("config", "what", "kind", "advice"),
    [
        (
            {"message.timestamp.type": "CreateTime"},
            "the topic t has message.timestamp.type=CreateTime, and LogAppendTime is the arrival clock",
            UNREADABLE,
            "message.timestamp.type=LogAppendTime",
        ),
        (
            {"cleanup.policy": "compact,delete"},
            "the topic t has cleanup.policy=compact,delete, which deletes batches of a probe",
            UNREADABLE,
            "cleanup.policy=delete",
        ),
        (
            {"max.message.bytes": "1000"},
            "the topic t takes messages of 1000 bytes, and a larger batch of a probe is lost",
            UNWRITABLE,
            f"max.message.bytes={topics.MAX_MESSAGE_BYTES}",
        ),
        (
            {"min.insync.replicas": "4"},
            "the topic t has min.insync.replicas=4 and replication 3, and takes no record",
            UNWRITABLE,
            "min.insync.replicas=2",
        ),
        (
            {"min.insync.replicas": "1"},
            ONE_ACKNOWLEDGES,
            WEAK,
            "min.insync.replicas=2",
        ),
        (
            {"retention.ms": "60000"},
            "the topic t keeps records for 60 s: a reader that is down for longer misses some",
            WEAK,
            "retention.ms=604800000",
        ),
        (
            {"retention.ms": "3599999"},
            "the topic t keeps records for 3,599.999 s: a reader that is down for longer misses some",
            WEAK,
            "retention.ms=604800000",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_remedy(
    config: dict[str, str], what: str, kind: tuple[bool, bool], advice: str
) -> None:
    """Weak is what works until a bad day; what no probe can write, or no monitor read, is not."""
    assert told(config) == [(f"{what}: {ALTER} --add-config {advice}'", kind)]


@pytest.mark.parametrize(
    ("in_sync", "expected"),
    [
        (
            "1",
            (
                f"{ONE_ACKNOWLEDGES}: make it with replication 3 and min.insync.replicas 2",
                WEAK,
            ),
        ),
        (
            "2",
            (
                f"{NONE_CAN}: {ALTER} --add-config min.insync.replicas=1'",
                UNWRITABLE,
            ),
        ),
    ],
)
def test_no_remedy_makes_it_worse(in_sync: str, expected: tuple[str, tuple[bool, bool]]) -> None:
    """One copy cannot be acknowledged twice: a topic of which that is asked takes nothing; nobody is told to."""
    weak = ("the topic t has replication 1: a broker that dies takes data along: make it with replication 3", WEAK)
    assert set(told({"min.insync.replicas": in_sync}, 1)) == {weak, expected}


@pytest.mark.parametrize(
    ("numbers", "flags"),
    [
        ((1, 1), "--replication 1 --min-insync 1 --allow-weak"),
        ((3, 1), "--replication 3 --min-insync 1 --allow-weak"),
        ((3, 2), "--replication 3 --min-insync 2"),
    ],
)
def test_flags_are_those_that_are_taken(numbers: tuple[int, int], flags: str) -> None:
    """The one for weak topics where it is needed."""
    assert topics.format_create_flags(*numbers) == flags


AS_ASKED = TopicDescription(2, 1, topics.build_config(1, 168) | {"compression.type": "producer"}, "an id")


def create_twice_asked(monkeypatch: pytest.MonkeyPatch, *found: TopicDescription | None) -> None:
    """Make a topic where the answer to the request is that it exists; ``found`` is what is there, look by look."""
    answer: Future[None] = Future()
    answer.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)))
    admin = Mock()
    admin.create_topics.return_value = {PLACE.topic: answer}
    monkeypatch.setattr(topics, "_open_admin", lambda *_: (admin, []))
    monkeypatch.setattr(topics, "describe_topic", Mock(side_effect=found))
    topics.create_topic(PLACE, KafkaAccess(), partitions=2, replication=1, min_insync=1)


@pytest.mark.parametrize("found", [AS_ASKED, None], ids=["told", "not told yet"])
def test_what_a_request_that_was_sent_again_finds_is_ours(
    found: TopicDescription | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that a repeated request finds counts as made by it, if it is as requested or not described yet."""
    create_twice_asked(monkeypatch, None, found)


@pytest.mark.parametrize(
    "looks",
    [
        (AS_ASKED,),
        (None, TopicDescription(3, 1, AS_ASKED.config)),
        (None, TopicDescription(2, 3, AS_ASKED.config)),
        (None, TopicDescription(2, 1, AS_ASKED.config | {"message.timestamp.type": "CreateTime"})),
    ],
    ids=["before", "partitions", "replication", "settings"],
)
def test_what_another_has_made_is_there_already(
    looks: tuple[TopicDescription | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before we asked, or meanwhile and otherwise."""
    told = "the topic t is there already: 'hopwatch topics check' says whether it will do"
    with pytest.raises(ConfigurationError, match=told):
        create_twice_asked(monkeypatch, *looks)
