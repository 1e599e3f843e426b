"""Kafka URLs and client credentials, shared by probes, taps and the monitor."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

SCHEME: Final = "kafka://"
DEFAULT_TOPIC: Final = "hopwatch.observations"
MAX_TOPIC_CHARS: Final = 249
"""Kafka's own bound."""
OFFSET_HEADER: Final = "hopwatch-clock-offset-max-us"
"""Header of a record that says by how much the clock of its probe is ahead of the broker's at most, µs in decimal."""
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SECRETS: Final = ("sasl_password", "ssl_key_password")
"""Settings that may be read from a file; the setting with the suffix ``_file`` names it."""
FILES: Final = (*(f"{secret}_file" for secret in SECRETS), "ssl_ca_file", "ssl_certificate_file", "ssl_key_file")
"""The settings that name a file."""

_TOPIC: Final = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_TOPIC_CHARS}}}")
_BROKER: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")
_MAX_PORT: Final = 65_535
_PROTOCOL: Final = r"(?:[a-z_]+://)?"
"""Prefix that the client puts before an address, unless the protocol is PLAINTEXT."""
_NOT_KAFKA: Final = re.compile(rf"{_PROTOCOL}(\S+?)(?:/\w+)?: Receive failed: Invalid response size")
_ADVERTISED: Final = re.compile(rf"{_PROTOCOL}(\S+:\d+)/(\d+): (.*)")
_UNREACHABLE: Final = re.compile(r"\d+/\d+ brokers are down|.*Local: Broker transport failure")


@dataclass(frozen=True, slots=True)
class KafkaPlace:
    """Kafka topic and its bootstrap brokers, ``host:port`` with commas between them."""

    brokers: str
    topic: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse ``kafka://host:9092,host:9092/topic``; the topic is optional.

        Raises:
            ValueError: the URL is not a Kafka URL, or a part of it is invalid.
        """
        # A password in a URL would be printed with it.
        expected = f'"{SCHEME}HOST:PORT/TOPIC", such as "{SCHEME}broker:9092/{DEFAULT_TOPIC}"'
        if not url.startswith(SCHEME):
            raise ValueError(f"a Kafka URL is {expected}; got {url!r:.80}")
        brokers, _, topic = url.removeprefix(SCHEME).partition("/")
        if "@" in brokers:
            raise ValueError(f"a Kafka URL is {expected}, without user and password: these are settings of their own")
        for broker in brokers.split(","):
            found = _BROKER.fullmatch(broker)
            if not found or not 0 < int(found[1]) <= _MAX_PORT:
                raise ValueError(f"a Kafka URL is {expected}; got {broker!r:.80} for a broker")
        topic = topic or DEFAULT_TOPIC
        if not _TOPIC.fullmatch(topic) or topic in {".", ".."}:
            what = f"a topic is 1 to {MAX_TOPIC_CHARS} of the characters A-Za-z0-9._-"
            raise ValueError(f"{what}, got {topic!r:.80}")
        return cls(brokers, topic)

    def __str__(self) -> str:
        """Return the URL."""
        return f"{SCHEME}{self.brokers}/{self.topic}"


@dataclass(frozen=True, slots=True)
class KafkaAccess:
    """Security settings of a Kafka client: encryption and credentials. Files are PEM paths; secrets are never shown.

    Raises:
        ValueError: a value is invalid, or contradicts another.
    """

    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    sasl_username: str = ""
    sasl_password: str = field(default="", repr=False)
    ssl_ca_file: str = ""
    ssl_certificate_file: str = ""
    ssl_key_file: str = ""
    ssl_key_password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Check the values against each other."""
        _check_choice("security_protocol", self.security_protocol, PROTOCOLS)
        if self.is_sasl:
            _check_choice("sasl_mechanism", self.sasl_mechanism, MECHANISMS)
        elif self.sasl_mechanism or self.sasl_username or self.sasl_password:
            raise ValueError(f"security_protocol {self.security_protocol} takes no sasl_… settings: use SASL_SSL")
        if self.is_sasl and not (self.sasl_username and self.sasl_password):
            raise ValueError(f"security_protocol {self.security_protocol} needs sasl_username and sasl_password")
        if bool(self.ssl_certificate_file) != bool(self.ssl_key_file):
            raise ValueError("ssl_certificate_file and ssl_key_file go together: name both or neither")

    @property
    def is_sasl(self) -> bool:
        """Return whether the client authenticates by user and password (SASL)."""
        return self.security_protocol.startswith("SASL_")

    @property
    def is_ssl(self) -> bool:
        """Return whether the connection is encrypted (TLS)."""
        return self.security_protocol.endswith("SSL")

    def for_librdkafka(self, brokers: str) -> dict[str, str | bool]:
        """Return the client configuration for these brokers, under librdkafka's names, as confluent-kafka takes it.

        The client creates no topic: by default brokers create each topic that a client asks for, with default settings.
        """
        said: dict[str, str | bool] = {"bootstrap.servers": brokers, "security.protocol": self.security_protocol}
        if self.is_sasl:
            said |= {"sasl.mechanisms": self.sasl_mechanism, "sasl.username": self.sasl_username}
            said |= {"sasl.password": self.sasl_password}
        if self.is_ssl:
            said |= {
                "ssl.ca.location": self.ssl_ca_file,
                "ssl.certificate.location": self.ssl_certificate_file,
                "ssl.key.location": self.ssl_key_file,
                "ssl.key.password": self.ssl_key_password,
            }
        return {name: value for name, value in said.items() if value} | {"allow.auto.create.topics": False}


def read_secret(secret: str, said: Mapping[str, str], read: Callable[[str], str]) -> str:
    """Return a secret from its setting, or from the file that its ``_file`` setting names; ``read`` returns the text.

    An empty setting counts as absent.

    Raises:
        ValueError: both settings are given.
    """
    value, file = said.get(secret, ""), said.get(f"{secret}_file", "")
    if value and file:
        raise ValueError(f"{secret} and {secret}_file both say the secret: keep one of them")
    return read(file).rstrip("\r\n") if file else value


def describe_error(told: str, brokers: str = "") -> str:
    """Return a client error in plain words, with the likely cause where the client's own words mislead.

    ``brokers`` are the configured ones; the error may be of others, which these advertise.
    """
    if found := _NOT_KAFKA.match(told):
        return f"what answers at {found[1]} does not speak Kafka, or wants another security_protocol"
    if brokers and (found := _ADVERTISED.fullmatch(told)) and found[1].lower() not in brokers.lower().split(","):
        return f"broker {found[2]} is to be found at {found[1]}, say its advertised.listeners: {found[3]}"
    return f"none answers as a broker does, or lets us in ({told})" if _UNREACHABLE.fullmatch(told) else told


def _check_choice(what: str, got: str, allowed: tuple[str, ...]) -> None:
    if got not in allowed:
        raise ValueError(f"{what} is one of {', '.join(allowed)}; got {got!r:.60}")
