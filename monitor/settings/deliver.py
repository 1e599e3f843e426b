"""``[deliver.NAME]``: deliveries of a topic to an HTTP receiver. Secrets are never shown; spans are in µs."""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator
from pydantic_core import InitErrorDetails

from hopwatch.monitor.settings import error_details, receivers
from hopwatch.monitor.settings.fields import Duration, PositiveDuration, PositiveInt, as_tuple, name_validator
from hopwatch.monitor.settings.secrets import SecretTable
from hopwatch.probes.contract.kafka import MAX_TOPIC_CHARS, KafkaPlace
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.limits import NAME_PATTERN

MAX_BATCH: Final = 1_000
MAX_PARALLEL: Final = 1_024
MAX_TRIES: Final = 100
MAX_TIERS: Final = 8
MAX_TIMEOUT_US: Final = 300_000_000
MAX_LINGER_US: Final = 60_000_000
MAX_BATCH_BYTES: Final = 1024**3
MAX_AGE_US: Final = 365 * 86_400_000_000
MAX_HEADER_CHARS: Final = 8_000
MIN_TIER_US: Final = 1_000_000
MAX_TIER_US: Final = 7 * 86_400_000_000
"""Kafka keeps records for seven days by default."""
MIN_KEY_BYTES: Final = 24
MAX_KEY_BYTES: Final = 64
"""Bounds of a signing key, as Standard Webhooks has them."""
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what a secret begins with
SECRET_KEYS: Final = frozenset({"headers", "secret"})
"""Keys whose values are never shown."""
DEFAULT_TIERS_US: Final = (30_000_000, 300_000_000, 3_600_000_000)
_TIER_CHARS: Final = 24
"""Longest end of a retry topic's name, such as ``.retry.3650d``, and of that of the rejected."""
_CLIENT_ERRORS: Final = frozenset(range(400, 500)) - {413}


def parse_topic_url(value: object) -> str:
    """Parse the URL of a Kafka topic.

    Raises:
        ValueError: it is anything else, or names no topic.
    """
    if isinstance(value, str) and value.startswith(KAFKA):
        if not value.removeprefix(KAFKA).partition("/")[2]:
            msg = f'messages are in a topic of their own, "{KAFKA}HOST:PORT/TOPIC"; {value!r:.80} names none'
            raise ValueError(msg)
        return str(KafkaPlace.parse(value))
    msg = f'messages are in a topic, "{KAFKA}HOST:PORT/TOPIC"; got {value!r:.80}'
    raise ValueError(msg)


def check_signing_key(text: str) -> None:
    """Check a key of Standard Webhooks: ``whsec_`` and the Base64 of 24 to 64 bytes.

    Raises:
        ValueError: it is not; the message does not show it.
    """
    told = f"a signing secret is {SECRET_PREFIX} and the Base64 of {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes"
    advice = f"make one by: echo {SECRET_PREFIX}$(openssl rand -base64 32)"
    if not text.startswith(SECRET_PREFIX):
        msg = f"{told}, this one has no {SECRET_PREFIX}: {advice}"
        raise ValueError(msg)
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        msg = f"{told}, this one is no Base64: {advice}"
        raise ValueError(msg) from None
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        msg = f"{told}, this one has {len(key)}: {advice}"
        raise ValueError(msg)


def _check_node(name: str) -> str:
    if not NAME_PATTERN.fullmatch(name):
        msg = f"a node's name is 1 to 128 of the characters A-Za-z0-9._-, got {name!r:.80}"
        raise ValueError(msg)
    return name


def _check_most(name: str, most: int, value: int) -> int:
    if value > most:
        msg = f"{name} is at most {most:,}, got {value:,}"
        raise ValueError(msg)
    return value


def _check_batch(count: int) -> int:
    return _check_most("batch", MAX_BATCH, count)


def _check_parallel(count: int) -> int:
    return _check_most("parallel", MAX_PARALLEL, count)


def _check_tries(count: int) -> int:
    return _check_most("tries", MAX_TRIES, count)


def _check_timeout(span_us: int) -> int:
    if span_us > MAX_TIMEOUT_US:
        msg = f"timeout is at most {MAX_TIMEOUT_US // 60_000_000}m: a receiver that hangs holds messages as long"
        raise ValueError(msg)
    return span_us


def _check_linger(span_us: int) -> int:
    if span_us > MAX_LINGER_US:
        msg = f"linger is at most {MAX_LINGER_US // 60_000_000}m: messages wait as long for a batch to fill"
        raise ValueError(msg)
    return span_us


def _check_batch_bytes(size_bytes: int) -> int:
    return _check_most("batch_bytes", MAX_BATCH_BYTES, size_bytes)


def _check_age(span_us: int) -> int:
    if span_us > MAX_AGE_US:
        msg = f"max_age is at most {MAX_AGE_US // 86_400_000_000}d"
        raise ValueError(msg)
    return span_us


def _check_headers(headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    for name, value in receivers.check_headers(headers).items():
        if name.lower().startswith("webhook-"):
            msg = f"the header {name} is one of the signature, which secret makes"
            raise ValueError(msg)
        if len(value.get_secret_value()) > MAX_HEADER_CHARS:
            msg = f"the header {name} has at most {MAX_HEADER_CHARS:,} characters"
            raise ValueError(msg)
    return headers


def _check_tiers(tiers_us: tuple[int, ...]) -> tuple[int, ...]:
    if not 0 < len(tiers_us) <= MAX_TIERS:
        msg = f"retry lists 1 to {MAX_TIERS} waits, got {len(tiers_us)}: each is a topic"
        raise ValueError(msg)
    if not all(MIN_TIER_US <= tier_us <= MAX_TIER_US for tier_us in tiers_us):
        msg = "a wait of retry is from 1s to 7d: shorter ones are those between tries"
        raise ValueError(msg)
    if list(tiers_us) != sorted(set(tiers_us)):
        msg = 'retry lists waits from the shortest to the longest, each once, such as ["30s", "5m", "1h"]'
        raise ValueError(msg)
    return tiers_us


def _check_statuses(statuses: tuple[int, ...]) -> tuple[int, ...]:
    odd = [status for status in statuses if status not in _CLIENT_ERRORS]
    if odd:
        told = "recoverable lists statuses from 400 to 499 but 413, after which a batch is split"
        msg = f"{told}, got {odd[0]}: of 5xx all are, of others none is"
        raise ValueError(msg)
    return statuses


def _check_client_file(file: str) -> str:
    if file:
        try:
            Path(file).read_bytes()
        except OSError as error:
            msg = f"the file {file} cannot be read: {error.strerror}"
            raise ValueError(msg) from None
    return file


DeliveryName = Annotated[str, AfterValidator(name_validator("a delivery's name"))]
TopicUrl = Annotated[str, BeforeValidator(parse_topic_url)]
ClientFile = Annotated[str, AfterValidator(_check_client_file)]


class DeliverySettings(SecretTable):
    """``[deliver.NAME]``: one topic, one receiver, and the terms between them."""

    SECRET_CHECKS: ClassVar = {"secret": check_signing_key}
    stream: str
    node: Annotated[str, AfterValidator(_check_node)] = "deliver"
    source: TopicUrl = Field(alias="from")
    url: Annotated[str, AfterValidator(receivers.check_url)]
    group: str = ""
    from_start: bool = False
    rejected: TopicUrl | None = None
    id_json: str = ""
    time_json: str = ""
    time_unit: Literal["ns", "us", "ms", "s", "iso"] = "us"
    body: Literal["events", "value"] = "events"
    batch: Annotated[PositiveInt, AfterValidator(_check_batch)] = 100
    batch_bytes: Annotated[PositiveInt, AfterValidator(_check_batch_bytes)] = 1_048_576
    linger_us: Annotated[Duration, AfterValidator(_check_linger)] = Field(50_000, alias="linger")
    parallel: Annotated[PositiveInt, AfterValidator(_check_parallel)] = 16
    timeout_us: Annotated[PositiveDuration, AfterValidator(_check_timeout)] = Field(10_000_000, alias="timeout")
    order: Literal["none", "key"] = "none"
    headers: Annotated[Mapping[str, SecretStr], AfterValidator(_check_headers)] = {}
    secret: SecretStr = SecretStr("")
    secret_file: str = ""
    ca_file: Annotated[str, AfterValidator(receivers.check_ca_file)] = ""
    certificate_file: ClientFile = ""
    key_file: ClientFile = ""
    tries: Annotated[PositiveInt, AfterValidator(_check_tries)] = 3
    retry_us: Annotated[tuple[PositiveDuration, ...], BeforeValidator(as_tuple), AfterValidator(_check_tiers)] = Field(
        DEFAULT_TIERS_US, alias="retry"
    )
    max_age_us: Annotated[PositiveDuration, AfterValidator(_check_age)] = Field(86_400_000_000, alias="max_age")
    recoverable: Annotated[tuple[int, ...], BeforeValidator(as_tuple), AfterValidator(_check_statuses)] = (429,)

    @model_validator(mode="after")
    def _check_body(self) -> Self:
        if self.body == "value" and self.batch != 1:
            msg = f'body = "value" sends one message a request: say batch = 1, got {self.batch}'
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if bool(self.certificate_file) != bool(self.key_file):
            msg = "certificate_file and key_file go together: name both or neither"
            raise ValueError(msg)
        if self.certificate_file:
            try:
                ssl.create_default_context().load_cert_chain(self.certificate_file, self.key_file)
            except (ssl.SSLError, OSError):
                msg = "certificate_file and key_file are PEM, and the key is that certificate's, without a password"
                raise ValueError(msg) from None
        return self

    @property
    def place(self) -> KafkaPlace:
        """Topic of the messages and its brokers."""
        return KafkaPlace.parse(self.source)

    def rejected_url(self) -> str:
        """Return the URL of the topic for rejected messages; the default is ``<topic>.rejected`` beside the source."""
        return self.rejected or f"{self.source}.rejected"

    def group_name(self, name: str) -> str:
        """Return the consumer group of the delivery of this name."""
        return self.group or f"hopwatch-deliver-{name}"


def check_deliveries(
    deliveries: Mapping[str, DeliverySettings], nodes: Mapping[str, Sequence[str] | None], transport: str | None
) -> list[InitErrorDetails]:
    """Check deliveries against each other, the URL of the transport, and the streams and their nodes.

    The nodes of a stream are None where its path is wrong.
    """
    found: list[InitErrorDetails] = []
    groups: dict[tuple[str, str], str] = {}
    places: dict[tuple[str, str, str], str] = {}
    for name, delivery in deliveries.items():
        if delivery.stream not in nodes:
            nearest = error_details.suggest_names(delivery.stream, list(nodes))
            told = f"there is no [streams.{delivery.stream}]{nearest}"
            found.append(error_details.error_at((name, "stream"), delivery.stream, told))
        elif (known := nodes[delivery.stream]) is not None and delivery.node not in known:
            told = f"the path of {delivery.stream} has no node {delivery.node!r}"
            told = f'{told}: let it end with "… -> {delivery.node}"'
            found.append(error_details.error_at((name, "node"), delivery.node, told))
        found += _check_topics(name, delivery, transport)
        other = groups.setdefault((delivery.source, delivery.group_name(name)), name)
        if other != name:
            told = f"[deliver.{other}] reads the same topic as the same group, and they would share its messages"
            found.append(error_details.error_at((name, "group"), delivery.group, f"{told}: name another group"))
        twin = places.setdefault((delivery.source, delivery.stream, delivery.node), name)
        if twin != name:
            told = f"[deliver.{twin}] delivers the same topic at the same node, and would hide what this one loses"
            found.append(error_details.error_at((name, "node"), delivery.node, f"{told}: name another node"))
    return found


def _check_topics(name: str, delivery: DeliverySettings, transport: str | None) -> list[InitErrorDetails]:
    """Check the topics of a delivery against each other, and against that of the probes' records."""
    found: list[InitErrorDetails] = []
    rejected = KafkaPlace.parse(delivery.rejected_url()) if delivery.rejected else None
    if delivery.source == transport:
        told = "messages are in a topic of their own, got that of the probes' records, [transport] url"
        found.append(error_details.error_at((name, "from"), delivery.source, told))
    if rejected is not None and rejected == delivery.place:
        told = "what the receiver rejects goes to a topic of its own, got the one that from names"
        found.append(error_details.error_at((name, "rejected"), delivery.rejected, told))
    elif rejected is not None and rejected.brokers != delivery.place.brokers:
        told = f"from is at {delivery.place.brokers} and rejected at {rejected.brokers}: a transaction lies within one"
        found.append(error_details.error_at((name, "rejected"), delivery.rejected, f"{told} cluster, name the same"))
    if len(delivery.place.topic) + len(name) + _TIER_CHARS > MAX_TOPIC_CHARS:
        told = f"its retry topics begin with {delivery.place.topic}.{name}, and a topic has at most {MAX_TOPIC_CHARS}"
        found.append(error_details.error_at((name, "from"), delivery.source, f"{told} characters: take a shorter name"))
    return found
