"""Tests of topics against a real broker: made as observations need them, and what is wrong is told with its remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hopwatch.demo.links.topics import TopicInlet, TopicOutlet
from hopwatch.monitor import topics
from hopwatch.monitor.errors import ConfigurationError, TransportError
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from servers.kafka import Kafka
from servers.process import free_ports, until
from tests.real.program_folder import Workplace

GATED = """
[gate.streams.s]
to = "{0}/events"
rejected = "{0}/events.rejected"
"""


def test_a_topic_is_made_and_will_do(kafka: Kafka, tmp_path: Path) -> None:
    """One broker is weak, and has to be asked for; made once, it is there already."""
    work = Workplace(tmp_path, kafka.url("made"))
    flags = ("--partitions", "3", "--replication", "1", "--min-insync", "1")
    refused = work.call("topics", "create", *flags)
    assert (refused.returncode, refused.stderr) == (
        2,
        (
            "hopwatch: a topic with replication 1 and min.insync.replicas 1 may lose what it has acknowledged, "
            "replication 3 and min.insync.replicas 2 does not: pass --allow-weak if that will do\n"
        ),
    )
    made = work.call("topics", "create", *flags, "--allow-weak")
    assert (made.returncode, made.stderr) == (
        0,
        (
            "made the topic made: 3 partitions, replication 1, min.insync.replicas 1, "
            "message.timestamp.type=LogAppendTime\n"
            "weak, and allowed: the topic made has replication 1: a broker that dies takes data along\n"
            "weak, and allowed: the topic made has min.insync.replicas=1: what one broker has acknowledged may die "
            "with it\n"
        ),
    )
    again = work.call("topics", "create", *flags, "--allow-weak")
    what = "hopwatch: the topic made is there already: 'hopwatch topics check' says whether it will do\n"
    assert (again.returncode, again.stderr) == (2, what)
    checked = work.call("topics", "check", "--allow-weak")
    said = made.stderr.splitlines(keepends=True)[1:]
    will_do = "the topic made will do: 3 partitions, replication 1\n"
    assert (checked.returncode, checked.stdout) == (0, "".join([*said, will_do]))
    strict, lenient = work.call("topics", "check", "--json"), work.call("topics", "check", "--json", "--allow-weak")
    told, allowed = json.loads(strict.stdout), json.loads(lenient.stdout)
    assert (strict.returncode, told["partitions"], len(told["problems"]), told["allowed"]) == (1, 3, 2, [])
    assert all(problem["is_weak"] for problem in told["problems"])
    assert [one["advice"].endswith(", or pass --allow-weak") for one in told["problems"]] == [True, True]
    assert (lenient.returncode, allowed["problems"], len(allowed["allowed"])) == (0, [], 2)


def test_doctor_warns_of_a_weak_topic_unless_it_is_to_be_weak(kafka: Kafka, tmp_path: Path) -> None:
    """A finding, exit 1, with what to do; taken with --allow-weak it is all well, and still told."""
    work = Workplace(tmp_path, kafka.url("doctored"))
    made = work.call("topics", "create", "--replication", "1", "--min-insync", "1", "--allow-weak")
    assert made.returncode == 0
    warned, taken = work.call("doctor"), work.call("doctor", "--allow-weak")
    what = "the topic doctored has replication 1: a broker that dies takes data along"
    assert warned.returncode == 1
    assert f"WARN transport  {what}\n" in warned.stdout
    assert " make it with replication 3, or pass --allow-weak\n" in warned.stdout
    assert taken.returncode == 0
    assert f"weak, and allowed: {what}" in taken.stdout
    kafka.create_topic("small", config={topics.TIMESTAMPS: topics.LOG_APPEND, "max.message.bytes": "1000"})
    small = Workplace(tmp_path / "small", kafka.url("small")).call("doctor", "--allow-weak")
    assert small.returncode == 3
    assert "FAIL transport  the topic small takes messages of 1000 bytes" in small.stdout


def test_no_flag_takes_a_topic_that_probes_cannot_write(kafka: Kafka, tmp_path: Path) -> None:
    """Exit 1 with the command that mends it, which does; a monitor reads it all the same, and logs that."""
    url = kafka.url("tiny")
    kafka.create_topic("tiny", config={topics.TIMESTAMPS: topics.LOG_APPEND, "max.message.bytes": "1000"})
    work = Workplace(tmp_path, url)
    done = work.call("topics", "check", "--allow-weak")
    what = "wrong: the topic tiny takes messages of 1000 bytes, and a larger batch of a probe is lost: mend it with"
    assert done.returncode == 1
    assert f"{what} 'kafka-configs.sh --bootstrap-server {kafka.bootstrap}" in done.stdout
    with capture_logs() as logged:
        assert topics.require_topic(KafkaPlace.parse(url), KafkaAccess()).partitions == 1
    assert [one["problem"].partition(": ")[0] for one in logged] == [
        "the topic tiny takes messages of 1000 bytes, and a larger batch of a probe is lost",
        "the topic tiny has replication 1",
        "the topic tiny has min.insync.replicas=1",
    ]
    assert {(one["event"], one["log_level"]) for one in logged} == {("the topic is not as it should be", "warning")}


def test_more_replicas_than_brokers_are_refused(kafka: Kafka, tmp_path: Path) -> None:
    """In the broker's own words, and with the flags that it takes."""
    work = Workplace(tmp_path, kafka.url("wide"))
    done = work.call("topics", "create")
    assert done.returncode == 2
    assert done.stderr.startswith("hopwatch: the brokers do not take 6 partitions with replication 3: ")
    remedy = "--replication 1 --min-insync 1 --allow-weak"
    assert done.stderr.endswith(f"registered; there is 1 broker: pass {remedy}, or start more\n")
    assert work.call("topics", "create", *remedy.split()).returncode == 0


def test_a_number_that_the_brokers_refuse_for_another_reason_is_told_without_that_remedy(kafka: Kafka) -> None:
    """Fewer copies would not help there."""
    place = KafkaPlace.parse(kafka.url("none"))
    with pytest.raises(ConfigurationError, match=r"do not take 0 partitions with replication 1: (?!.*broker: pass)"):
        topics.create_topic(place, KafkaAccess(), partitions=0, replication=1, min_insync=1)


def test_a_topic_that_would_take_no_record_is_not_made(tmp_path: Path) -> None:
    """More acknowledgements than copies: the flags that can be are told, and no broker is asked."""
    work = Workplace(tmp_path, "kafka://127.0.0.1:1/t")
    done = work.call("topics", "create", "--allow-weak", "--replication", "1")
    assert (done.returncode, done.stderr) == (
        2,
        (
            "hopwatch: min.insync.replicas 2 of replication 1 cannot be, no record would be taken: "
            "pass --replication 1 --min-insync 1 --allow-weak\n"
        ),
    )


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
    checked = work.call("topics", "check", "--allow-weak")
    assert (checked.returncode, checked.stdout.splitlines()[0]) == (1, f"wrong: {expected}")
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
    checked = work.call("topics", "check")
    assert (checked.returncode, checked.stdout) == (1, f"wrong: {told} [transport] url\n")


def test_topics_and_readers_are_deleted(kafka: Kafka) -> None:
    """Topics and consumer groups are deleted, and missing ones are no error."""
    place, access = KafkaPlace.parse(kafka.url("short-lived")), KafkaAccess()
    topics.create_topic(place, access, partitions=1, replication=1, min_insync=1)
    inlet = TopicInlet.open(kafka.bootstrap, place.topic)
    outlet = TopicOutlet.open(kafka.bootstrap, place.topic)
    outlet.send(b"x", lambda: None)
    outlet.close()
    until(lambda: inlet.receive(1) == [b"x"], "a message")
    inlet.done(1)
    inlet.close()
    for _ in range(2):
        topics.delete_topics([place], access, [place.topic])
    until(lambda: topics.describe_topic(place, access) is None, "a topic that is gone")
    groups = kafka.admin().list_consumer_groups().result().valid
    assert place.topic not in [group.group_id for group in groups]


def test_topics_of_brokers_that_are_down_are_not_deleted() -> None:
    """Deleting topics of brokers that are down is an error."""
    (port,) = free_ports(1)
    with pytest.raises(TransportError, match=f"the Kafka brokers 127.0.0.1:{port} cannot be reached: "):
        topics.delete_topics([KafkaPlace(f"127.0.0.1:{port}", "t")], KafkaAccess())


def test_a_spool_is_no_topic(tmp_path: Path) -> None:
    """Exit 2: there is nothing to make or to check."""
    done = Workplace(tmp_path, "spool:./spool").call("topics", "check")
    assert done.returncode == 2
    assert done.stderr.startswith("hopwatch: [transport] url is 'spool:")
    assert done.stderr.endswith('which is no topic: name one, "kafka://HOST:PORT/TOPIC"\n')


def test_the_gate_takes_no_weak_topic_unless_it_is_to_be_weak(kafka: Kafka, tmp_path: Path) -> None:
    """A missing topic and a weak one end the gate with 3 before it serves; the doctor says the same."""
    url = kafka.url("gated").rpartition("/")[0]
    work = Workplace(tmp_path, kafka.url("gated"), streams='[streams.s]\npath = "gate -> b"\n' + GATED.format(url))
    (port,) = free_ports(1)
    kafka.create_topic("gated", 1)
    missing = work.call("gate", "--port", str(port), "--allow-weak")
    assert missing.returncode == 3
    assert missing.stderr == (
        f"hopwatch: the topic events is not on {kafka.bootstrap}: make it with replication 3 and "
        "min.insync.replicas 2, or correct [gate.streams]\n"
    )
    for name in ("events", "events.rejected"):
        kafka.create_topic(name, 1)
    weak = work.call("gate", "--port", str(port))
    assert weak.returncode == 3
    assert weak.stderr == (
        "hopwatch: the topic events has replication 1: a broker that dies takes data along: "
        "make it with replication 3, or pass --allow-weak\n"
    )
    strict, lenient = work.call("doctor"), work.call("doctor", "--allow-weak")
    lines = [" ".join(line.split()) for line in strict.stdout.splitlines()]
    assert any(line.startswith("WARN gate the topic events has replication 1") for line in lines), strict.stdout
    assert "the topics that the gate writes; weak, and allowed: " in " ".join(lenient.stdout.split())
