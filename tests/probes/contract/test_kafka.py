"""Tests of a Kafka topic as a URL names it, and of what lets a client in."""

from __future__ import annotations

import pytest

from hopwatch.probes.contract.kafka import DEFAULT_TOPIC, KafkaAccess, KafkaPlace, describe_error

PLACES = {
    "kafka://broker:9092/t": ("broker:9092", "t"),
    "kafka://a:1,b.example:65535/obs.er-v_1": ("a:1,b.example:65535", "obs.er-v_1"),
    "kafka://[::1]:9092/t": ("[::1]:9092", "t"),
    "kafka://broker:9092": ("broker:9092", DEFAULT_TOPIC),
    "kafka://broker:9092/": ("broker:9092", DEFAULT_TOPIC),
}
FORM = 'a Kafka URL is "kafka://HOST:PORT/TOPIC", such as "kafka://broker:9092/hopwatch.observations"'
BAD_PLACES = {
    "http://broker:9092/t": f"{FORM}; got 'http://broker:9092/t'",
    "kafka://broker/t": f"{FORM}; got 'broker' for a broker",
    "kafka://broker:0/t": f"{FORM}; got 'broker:0' for a broker",
    "kafka://a:1,b:65536/t": f"{FORM}; got 'b:65536' for a broker",
    "kafka:///t": f"{FORM}; got '' for a broker",
    "kafka://me:secret@broker:9092/t": f"{FORM}, without user and password: these are settings of their own",
    "kafka://broker:9092/a/b": "a topic is 1 to 249 of the characters A-Za-z0-9._-, got 'a/b'",
    "kafka://broker:9092/..": "a topic is 1 to 249 of the characters A-Za-z0-9._-, got '..'",
    f"kafka://broker:9092/{'t' * 250}": f"a topic is 1 to 249 of the characters A-Za-z0-9._-, got '{'t' * 79}",
}


@pytest.mark.parametrize(("url", "place"), PLACES.items())
def test_a_url_names_brokers_and_topic(url: str, place: tuple[str, str]) -> None:
    """Several brokers with commas between them; without a topic, the usual one."""
    found = KafkaPlace.parse(url)
    assert (found.brokers, found.topic) == place
    assert KafkaPlace.parse(str(found)) == found


@pytest.mark.parametrize(("url", "message"), BAD_PLACES.items())
def test_a_url_that_names_no_topic_says_why(url: str, message: str) -> None:
    """The message has what was expected and what was got; a password is not repeated."""
    with pytest.raises(ValueError, match="is") as caught:
        KafkaPlace.parse(url)
    assert str(caught.value) == message


SASL = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "me", "sasl_password": "s3cret"}
BAD_ACCESS = [
    ({"security_protocol": "TLS"}, "security_protocol is one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL; got 'TLS'"),
    (
        {"security_protocol": "SASL_SSL", **SASL, "sasl_mechanism": "GSSAPI"},
        "sasl_mechanism is one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; got 'GSSAPI'",
    ),
    (SASL, "security_protocol PLAINTEXT takes no sasl_… settings: use SASL_SSL"),
    (
        {"security_protocol": "SASL_SSL", **SASL, "sasl_password": ""},
        "security_protocol SASL_SSL needs sasl_username and sasl_password",
    ),
    (
        {"security_protocol": "SSL", "ssl_key_file": "key.pem"},
        "ssl_certificate_file and ssl_key_file go together: name both or neither",
    ),
]


@pytest.mark.parametrize(("said", "message"), BAD_ACCESS)
def test_access_that_cannot_be_says_why(said: dict[str, str], message: str) -> None:
    """No message repeats a secret."""
    with pytest.raises(ValueError, match=r"sasl|ssl|security") as caught:
        KafkaAccess(**said)
    assert str(caught.value) == message


def test_access_is_told_to_librdkafka_in_its_own_words() -> None:
    """Only what was said, and that no topic is to be made; what is not encrypted says nothing of certificates."""
    common = {"bootstrap.servers": "h:1", "allow.auto.create.topics": False}
    assert KafkaAccess().for_librdkafka("h:1") == {"security.protocol": "PLAINTEXT"} | common
    full = KafkaAccess("SASL_SSL", **SASL, ssl_ca_file="ca.pem", ssl_certificate_file="c.pem", ssl_key_file="k.pem")
    assert full.for_librdkafka("h:1") == common | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "s3cret",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "c.pem",
        "ssl.key.location": "k.pem",
    }


def test_access_does_not_show_its_secrets() -> None:
    """The text of an access has none of its passwords."""
    told = repr(KafkaAccess("SASL_SSL", **SASL, ssl_key_password="hush"))  # noqa: S106 - a word for a test
    assert "s3cret" not in told
    assert "hush" not in told


SAID = {
    "broker:9092/bootstrap: Receive failed: Invalid response size 1213486160 (0..100000000): increase": (
        "what answers at broker:9092 does not speak Kafka, or wants another security_protocol"
    ),
    "inner:9093/2: Connect to ipv4#10.0.0.2:9093 failed": (
        "broker 2 is to be found at inner:9093, say its advertised.listeners: Connect to ipv4#10.0.0.2:9093 failed"
    ),
    "broker:9092/1: Connect to ipv4#10.0.0.1:9092 failed": "broker:9092/1: Connect to ipv4#10.0.0.1:9092 failed",
    "1/1 brokers are down": "none answers as a broker does, or lets us in (1/1 brokers are down)",
    "Broker: Unknown topic": "Broker: Unknown topic",
    "sasl_ssl://Broker:9092/1: SASL authentication error": "sasl_ssl://Broker:9092/1: SASL authentication error",
    "ssl://inner:9093/2: Connect failed": (
        "broker 2 is to be found at inner:9093, say its advertised.listeners: Connect failed"
    ),
    "ssl://broker:9092/bootstrap: Receive failed: Invalid response size 7": (
        "what answers at broker:9092 does not speak Kafka, or wants another security_protocol"
    ),
}


@pytest.mark.parametrize(("told", "words"), SAID.items())
def test_what_a_client_says_is_put_into_words_that_say_what_to_look_at(told: str, words: str) -> None:
    """Errors of the client that mislead are replaced; all others stay as they are."""
    assert describe_error(told, "broker:9092,other:9092") == words
