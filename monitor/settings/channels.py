"""``[alerts.channels.NAME]``: the ways to people, a table for each kind. Secrets are never shown. Spans are in µs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator
from pydantic_core import InitErrorDetails

from hopwatch.monitor.settings import misfits, receivers
from hopwatch.monitor.settings.fields import Names, PositiveDuration, Severity, as_tuple, name_of
from hopwatch.monitor.settings.labels import label_name
from hopwatch.monitor.settings.secrets import SecretTable

MOST_TIMEOUT_US: Final = 60_000_000
MOST_RESEND_US: Final = 3_600_000_000
MOST_PLACES: Final = 50
"""Instances of one Alertmanager, readers of one mail."""
HIDDEN: Final = frozenset({"bearer_token", "headers", "password", "routing_key", "secret", "url", "urls"})
"""Keys whose values no message shows: of many receivers the URL is the secret."""


def _timeout(span_us: int) -> int:
    if span_us > MOST_TIMEOUT_US:
        msg = f"timeout is at most {MOST_TIMEOUT_US // 1_000_000}s: other notifications wait as long"
        raise ValueError(msg)
    return span_us


def _resend(span_us: int) -> int:
    if span_us > MOST_RESEND_US:
        msg = "resend is at most 1h: Alertmanager takes an alert that it hears no more of for resolved"
        raise ValueError(msg)
    return span_us


def _some(values: tuple[str, ...]) -> tuple[str, ...]:
    if 0 < len(values) <= MOST_PLACES:
        return values
    msg = f"this lists 1 to {MOST_PLACES}, got {len(values)}"
    raise ValueError(msg)


def _secret_urls(value: object) -> SecretStr:
    return SecretStr("\n".join(receivers.urls(value)))


ChannelName = Annotated[str, AfterValidator(name_of("a channel's name"))]
Url = Annotated[str, AfterValidator(receivers.url)]
Template = Annotated[str, AfterValidator(receivers.template)]
UrlList = Annotated[tuple[Url, ...], BeforeValidator(receivers.urls)]
Address = Annotated[str, AfterValidator(receivers.address)]
Addresses = Annotated[tuple[Address, ...], BeforeValidator(receivers.urls)]
CaFile = Annotated[str, AfterValidator(receivers.ca_file)]


class ChannelTable(SecretTable):
    """What every channel has. Without ``severities`` nothing goes there but what other channels hand over."""

    kind: str
    enabled: bool = True
    severities: Annotated[tuple[Severity, ...], BeforeValidator(as_tuple)] = ("page", "ticket")
    streams: Names = ()
    heartbeats: bool = False
    fallback: str = ""
    timeout_us: Annotated[PositiveDuration, AfterValidator(_timeout)] = Field(10_000_000, alias="timeout")
    ca_file: CaFile = ""


class AlertmanagerChannel(ChannelTable):
    """Alertmanager: every instance is told, and told again until the incident ends."""

    FORMS: ClassVar = {"bearer_token": receivers.one_word, "password": str}
    kind: Literal["alertmanager"] = "alertmanager"
    heartbeats: bool = True
    urls: Annotated[UrlList, AfterValidator(_some)]
    resend_us: Annotated[PositiveDuration, AfterValidator(_resend)] = Field(60_000_000, alias="resend")
    labels: Mapping[Annotated[str, AfterValidator(label_name)], str] = {}
    username: str = ""
    password: SecretStr = SecretStr("")
    password_file: str = ""
    bearer_token: SecretStr = SecretStr("")
    bearer_token_file: str = ""

    @model_validator(mode="after")
    def _lets_in_by_one(self) -> Self:
        has_token, has_password = bool(self.said("bearer_token")), bool(self.said("password"))
        if bool(self.username) != has_password or (has_token and has_password):
            msg = "username and password go together, or bearer_token stands alone"
            raise ValueError(msg)
        return self


class PagerDutyChannel(ChannelTable):
    """PagerDuty, by its Events API v2."""

    FORMS: ClassVar = {"routing_key": receivers.one_word}
    NEEDED: ClassVar = ("routing_key",)
    kind: Literal["pagerduty"] = "pagerduty"
    routing_key: SecretStr = SecretStr("")
    routing_key_file: str = ""
    url: Url = "https://events.pagerduty.com/v2/enqueue"


class SlackChannel(ChannelTable):
    """Slack, and what takes Slack's messages, by an incoming webhook."""

    FORMS: ClassVar = {"url": receivers.url, "template": receivers.template}
    NEEDED: ClassVar = ("url",)
    kind: Literal["slack"] = "slack"
    url: SecretStr = SecretStr("")
    url_file: str = ""
    template: str = ""
    template_file: str = ""


class WebhookChannel(ChannelTable):
    """A receiver of one's own: JSON, and a signature that proves who sent it."""

    FORMS: ClassVar = {"url": receivers.url, "secret": receivers.long_enough}
    NEEDED: ClassVar = ("url",)
    kind: Literal["webhook"] = "webhook"
    url: SecretStr = SecretStr("")
    url_file: str = ""
    secret: SecretStr = SecretStr("")
    secret_file: str = ""
    headers: Annotated[Mapping[str, SecretStr], AfterValidator(receivers.headers)] = {}


class EmailChannel(ChannelTable):
    """E-mail, by a server that takes it on."""

    FORMS: ClassVar = {"password": str, "template": receivers.template}
    kind: Literal["email"] = "email"
    host: str
    port: Annotated[int, BeforeValidator(receivers.port)] | None = None
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    username: str = ""
    password: SecretStr = SecretStr("")
    password_file: str = ""
    sender: Address = Field(alias="from")
    to: Annotated[Addresses, AfterValidator(_some)]
    title: Template = ""
    template: str = ""
    template_file: str = ""

    @model_validator(mode="after")
    def _keeps_its_password(self) -> Self:
        has_password = bool(self.said("password"))
        if bool(self.username) != has_password:
            msg = "username and password go together"
            raise ValueError(msg)
        if has_password and self.tls == "none":
            msg = 'a password goes through TLS alone: tls is "starttls" or "implicit"'
            raise ValueError(msg)
        return self


class AppriseChannel(ChannelTable):
    """Whatever else Apprise knows a way to."""

    FORMS: ClassVar = {"urls": receivers.known_to_apprise, "template": receivers.template}
    NEEDED: ClassVar = ("urls",)
    kind: Literal["apprise"] = "apprise"
    urls: Annotated[SecretStr, BeforeValidator(_secret_urls)] = SecretStr("")
    urls_file: str = ""
    title: Template = ""
    template: str = ""
    template_file: str = ""


AnyChannel = AlertmanagerChannel | PagerDutyChannel | SlackChannel | WebhookChannel | EmailChannel | AppriseChannel
KINDS: Final[Mapping[str, type[AnyChannel]]] = {of.model_fields["kind"].default: of for of in get_args(AnyChannel)}


def channel_misfits(
    channels: Mapping[str, AnyChannel], names: Sequence[str], streams: Sequence[str]
) -> list[InitErrorDetails]:
    """Return what of some channels does not fit the streams, or each other; ``names`` are those of all channels."""
    found: list[InitErrorDetails] = []
    for name, channel in channels.items():
        where = ("channels", name, channel.kind)
        found += misfits.unknown((*where, "streams"), channel.streams, streams, "stream")
        if channel.fallback and channel.fallback not in names:
            told = f"there is no channel {channel.fallback!r:.80}{misfits.nearest(channel.fallback, names)}"
            found.append(misfits.told((*where, "fallback"), channel.fallback, told))
        elif name in _after(name, channels):
            told = "a channel falls back on another one, and in the end never on itself"
            found.append(misfits.told((*where, "fallback"), channel.fallback, told))
    return found


def _after(name: str, channels: Mapping[str, AnyChannel]) -> list[str]:
    """Return the channels that take over from one, in order, each once."""
    after: list[str] = []
    while (channel := channels.get(name)) and channel.fallback and channel.fallback not in after:
        name = channel.fallback
        after.append(name)
    return after
