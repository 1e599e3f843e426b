"""Tests of what all Kafka clients share: access by the environment, the topic check, the text of errors."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import (
    BrokersError,
    TopicError,
    ask_topic,
    build_client_config,
    check_topic,
    describe_kafka_error,
    get_kafka_error,
    is_fatal_error,
    read_access,
)

PREFIX = "HOPWATCH_TRANSPORT__KAFKA__"
USER = {
    f"{PREFIX}SECURITY_PROTOCOL": "SASL_SSL",
    f"{PREFIX}SASL_MECHANISM": "PLAIN",
    f"{PREFIX}SASL_USERNAME": "me",
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file with a secret."""
    file = tmp_path / "secret"
    file.write_text("from-file\r\n")
    return file


def test_without_a_word_nothing_is_needed() -> None:
    """Without credentials the client connects in plain text."""
    assert read_access({"HOPWATCH_SINK": "kafka://h:1"}) == KafkaAccess()


@pytest.mark.parametrize("said", [{}, {"SASL_PASSWORD": ""}])
def test_a_secret_may_stand_in_a_file(said: dict[str, str], secret: Path) -> None:
    """Its line end is not part of it; a variable that is empty says nothing."""
    variables = {"SASL_PASSWORD_FILE": str(secret), **said}
    access = read_access(USER | {PREFIX + name: value for name, value in variables.items()})
    assert access == KafkaAccess("SASL_SSL", "PLAIN", "me", "from-file")


@pytest.mark.parametrize("name", ["sasl_password", "ssl_key_password"])
def test_a_secret_that_is_said_twice_is_refused(name: str, secret: Path) -> None:
    """Nobody has to guess which one is taken, and neither is shown."""
    said = {PREFIX + name.upper(): "from-variable", f"{PREFIX}{name.upper()}_FILE": str(secret)}
    with pytest.raises(ValueError, match="keep one") as caught:
        read_access(USER | said)
    assert str(caught.value) == f"{name} and {name}_file both say the secret: keep one of them"


PLACE = KafkaPlace("broker:9092", "orders")
GONE = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
AWAY = KafkaException(KafkaError(KafkaError._TRANSPORT))


class Brokers:
    """A client that gets one answer for any topic, or none."""

    def __init__(self, error: KafkaError | None = None, fault: KafkaException | None = None) -> None:
        """Take what is wrong with the topic, or with the brokers."""
        self._error, self._fault = error, fault

    def list_topics(self, topic: str, timeout_s: float) -> Any:  # noqa: ANN401 - as the client says
        """Answer."""
        assert (topic, timeout_s) == ("orders", 3.0)
        if self._fault is not None:
            raise self._fault
        found = SimpleNamespace(partitions={0: None, 1: None}, error=self._error)
        return SimpleNamespace(topics={topic: found}, cluster_id="one")


def client_of(*what: Any) -> Any:  # noqa: ANN401 - a client by its one call
    """Return such a client."""
    return Brokers(*what)


def test_a_topic_is_asked_for_by_name_within_a_time() -> None:
    """Its partitions, its cluster, and what is wrong with it."""
    found = ask_topic(client_of(), "orders", 3.0)
    assert (list(found.partitions), found.cluster_id, found.error) == ([0, 1], "one", None)
    assert ask_topic(client_of(GONE), "orders", 3.0).error is GONE


def test_a_topic_that_can_be_written_passes() -> None:
    """Nothing is raised, and the client is asked once."""
    check_topic(client_of(), PLACE, 3.0)


def test_brokers_away_and_topics_missing_are_told_apart() -> None:
    """With the address or the name, and what the client says."""
    with pytest.raises(BrokersError) as away:
        check_topic(client_of(None, AWAY), PLACE, 3.0)
    says = "none answers as a broker does, or lets us in (Local: Broker transport failure)"
    assert str(away.value) == f"the brokers broker:9092 cannot be reached: {says}"
    with pytest.raises(TopicError) as gone:
        check_topic(client_of(GONE), PLACE, 3.0)
    assert str(gone.value) == "the topic orders cannot be written: Broker: Unknown topic or partition"


def test_an_error_has_one_text_however_it_comes() -> None:
    """As what a callback gets, as what a call raises, and as an error that is not Kafka's."""
    assert describe_kafka_error(GONE) == describe_kafka_error(KafkaException(GONE)) == GONE.str()
    assert get_kafka_error(KafkaException(GONE)) is GONE
    assert describe_kafka_error(BufferError("Local: Queue full")) == "Local: Queue full"


def test_brokers_that_advertise_another_address_are_named() -> None:
    """The configured ones are needed for that."""
    error = KafkaError(KafkaError._RESOLVE, "inside:9092/1: Failed to resolve")
    assert "its advertised.listeners" in describe_kafka_error(error, "broker:9092")
    assert describe_kafka_error(error) == error.str()


def test_a_client_that_has_failed_for_good_is_known_by_its_mark_or_its_code() -> None:
    """A consumer that another one replaced has the code alone."""
    fatal = KafkaError(KafkaError._FENCED, fatal=True), KafkaError(KafkaError._FATAL)
    passing = KafkaError(KafkaError._TRANSPORT), KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert [is_fatal_error(one) for one in (*fatal, *passing)] == [True, True, False, False]


def test_every_client_names_itself_and_makes_no_topic() -> None:
    """A client without a name keeps that of the library."""
    shared = {"bootstrap.servers": "b:1", "security.protocol": "PLAINTEXT", "allow.auto.create.topics": False}
    assert build_client_config("b:1", KafkaAccess()) == shared | {"log_level": 0}
    assert build_client_config("b:1", KafkaAccess(), "me") == shared | {"log_level": 0, "client.id": "me"}
