"""Tests of topics against a real broker: made as observations need them, and what is wrong is told with its remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demo.links.topics import TopicInlet, TopicOutlet
from monitor import topics
from monitor.errors import TransportError
from probes.contract.kafka import KafkaAccess, KafkaPlace
from tests.real.servers.kafka import Kafka
from tests.real.servers.process import free_ports, until
from tests.real.workplace import Workplace


def test_a_topic_is_made_and_will_do(kafka: Kafka, tmp_path: Path) -> None:
    """One broker is weak, and has to be asked for; made once, it is there already."""
    work = Workplace(tmp_path, kafka.url("made"))
    flags = ("--partitions", "3", "--replication", "1", "--min-insync", "1")
    refused = work.run("topics", "create", *flags)
    assert (refused.returncode, refused.stderr) == (
        2,
        (
            "hopwatch: a topic with replication 1 and min.insync.replicas 1 may lose what it has acknowledged, "
            "replication 3 and min.insync.replicas 2 does not: pass --allow-weak if that will do\n"
        ),
    )
    made = work.run("topics", "create", *flags, "--allow-weak")
    assert (made.returncode, made.stderr) == (
        0,
        (
            "made the topic made: 3 partitions, replication 1, min.insync.replicas 1, "
            "message.timestamp.type=LogAppendTime\n"
        ),
    )
    again = work.run("topics", "create", *flags, "--allow-weak")
    what = "hopwatch: the topic made is there already: 'hopwatch topics check' says whether it will do\n"
    assert (again.returncode, again.stderr) == (2, what)
    checked = work.run("topics", "check", "--allow-weak")
    assert (checked.returncode, checked.stdout) == (0, "the topic made will do: 3 partitions, replication 1\n")
    strict = work.run("topics", "check", "--json")
    told = json.loads(strict.stdout)
    assert (strict.returncode, told["partitions"], len(told["problems"])) == (1, 3, 2)
    assert all(problem["is_weak"] for problem in told["problems"])


def test_more_replicas_than_brokers_are_refused(kafka: Kafka, tmp_path: Path) -> None:
    """In the broker's own words."""
    done = Workplace(tmp_path, kafka.url("wide")).run("topics", "create")
    assert done.returncode == 2
    assert done.stderr.startswith("hopwatch: the brokers do not take 6 partitions with replication 3: ")


def test_a_topic_without_the_brokers_time_is_refused_with_the_command_that_mends_it(
    kafka: Kafka, tmp_path: Path
) -> None:
    """By the check and by the monitor alike."""
    kafka.create_topic("createtime", config={})
    work = Workplace(tmp_path, kafka.url("createtime"))
    expected = (
        "the topic createtime has message.timestamp.type=CreateTime, and LogAppendTime is the arrival clock: "
        f"mend it with 'kafka-configs.sh --bootstrap-server {kafka.bootstrap} --entity-type topics --entity-name "
        "createtime --alter --add-config message.timestamp.type=LogAppendTime'"
    )
    checked = work.run("topics", "check", "--allow-weak")
    assert (checked.returncode, checked.stdout) == (1, f"wrong: {expected}\n")
    for flags in ((), ("--once",)):
        done = work.run("run", *flags)
        assert (done.returncode, done.stderr) == (3, f"hopwatch: {expected}\n")


@pytest.mark.parametrize("command", [("run",), ("run", "--once"), ("topics", "check")], ids=" ".join)
def test_brokers_that_do_not_answer_are_named(command: tuple[str, ...], tmp_path: Path) -> None:
    """Exit 3 and one line: what, where, and what to look at."""
    (port,) = free_ports(1)
    done = Workplace(tmp_path, f"kafka://127.0.0.1:{port}/t").run(*command)
    assert done.returncode == 3
    assert done.stderr.startswith(f"hopwatch: the Kafka brokers 127.0.0.1:{port} cannot be reached: ")
    assert done.stderr.endswith(
        "; check the address, that a broker runs there, and what [transport.kafka] says of access; then try again\n"
    )
    assert done.stderr.count("\n") == 1


def test_a_topic_that_is_not_there_is_named_with_the_command_that_makes_it(kafka: Kafka, tmp_path: Path) -> None:
    """By the monitor and by the check."""
    work = Workplace(tmp_path, kafka.url("nowhere"))
    told = f"the topic nowhere is not on {kafka.bootstrap}: make it with 'hopwatch topics create', or correct"
    done = work.run("run")
    assert (done.returncode, done.stderr) == (3, f"hopwatch: {told} [transport] url\n")
    checked = work.run("topics", "check")
    assert (checked.returncode, checked.stdout) == (1, f"wrong: {told} [transport] url\n")


def test_topics_and_readers_are_deleted(kafka: Kafka) -> None:
    """What is not there is as good as deleted."""
    place, access = KafkaPlace.parse(kafka.url("short-lived")), KafkaAccess()
    topics.create(place, access, partitions=1, replication=1, min_insync=1)
    inlet = TopicInlet.open(kafka.bootstrap, place.topic)
    outlet = TopicOutlet.open(kafka.bootstrap, place.topic)
    outlet.send(b"x", lambda: None)
    outlet.close()
    until(lambda: inlet.receive(1) == [b"x"], "a message")
    inlet.done(1)
    inlet.close()
    for _ in range(2):
        topics.delete([place], access, [place.topic])
    until(lambda: topics.describe(place, access) is None, "a topic that is gone")
    groups = kafka.admin().list_consumer_groups().result().valid
    assert place.topic not in [group.group_id for group in groups]


def test_topics_of_brokers_that_are_down_are_not_deleted() -> None:
    """Whoever asked learns it."""
    (port,) = free_ports(1)
    with pytest.raises(TransportError, match=f"the Kafka brokers 127.0.0.1:{port} cannot be reached: "):
        topics.delete([KafkaPlace(f"127.0.0.1:{port}", "t")], KafkaAccess())


def test_a_spool_is_no_topic(tmp_path: Path) -> None:
    """Exit 2: there is nothing to make or to check."""
    done = Workplace(tmp_path, "spool:./spool").run("topics", "check")
    assert done.returncode == 2
    assert done.stderr.startswith("hopwatch: [transport] url is 'spool:")
    assert done.stderr.endswith('which is no topic: name one, "kafka://HOST:PORT/TOPIC"\n')
