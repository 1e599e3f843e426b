"""``[alerts.channels.NAME]``: notification channels, a table per kind. Secrets are never shown; spans are in µs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal, NamedTuple, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator
from pydantic_core import InitErrorDetails

from hopwatch.monitor.settings import error_details, receivers
from hopwatch.monitor.settings.fields import Names, PositiveDuration, PositiveInt, Severity, as_tuple, name_validator
from hopwatch.monitor.settings.labels import check_label_name
from hopwatch.monitor.settings.secrets import SecretTable

MAX_TIMEOUT_US: Final = 60_000_000
MAX_RESEND_US: Final = 3_600_000_000
MAX_RECEIVERS: Final = 50
"""Limit on the instances of one Alertmanager, and on the recipients of one mail."""
SECRET_KEYS: Final = frozenset({"bearer_token", "headers", "password", "routing_key", "secret", "url", "urls"})
"""Keys whose values are never shown: for many receivers the URL is the secret."""


def _check_timeout(span_us: int) -> int:
    if span_us > MAX_TIMEOUT_US:
        msg = f"timeout is at most {MAX_TIMEOUT_US // 1_000_000}s: other notifications wait as long"
        raise ValueError(msg)
    return span_us


def _check_resend(span_us: int) -> int:
    if span_us > MAX_RESEND_US:
        msg = "resend is at most 1h: Alertmanager takes an alert that it hears no more of for resolved"
        raise ValueError(msg)
    return span_us


def _check_count(values: tuple[str, ...]) -> tuple[str, ...]:
    if 0 < len(values) <= MAX_RECEIVERS:
        return values
    msg = f"this lists 1 to {MAX_RECEIVERS}, got {len(values)}"
    raise ValueError(msg)


def _parse_secret_urls(value: object) -> SecretStr:
    return SecretStr("\n".join(receivers.parse_urls(value)))


ChannelName = Annotated[str, AfterValidator(name_validator("a channel's name"))]
Url = Annotated[str, AfterValidator(receivers.check_url)]
Template = Annotated[str, AfterValidator(receivers.check_template)]
UrlList = Annotated[tuple[Url, ...], BeforeValidator(receivers.parse_urls)]
MailAddress = Annotated[str, AfterValidator(receivers.check_address)]
MailAddresses = Annotated[tuple[MailAddress, ...], BeforeValidator(receivers.parse_urls)]
CaFile = Annotated[str, AfterValidator(receivers.check_ca_file)]


class ChannelTable(SecretTable):
    """Keys of every channel. Without ``severities`` a channel serves only as a fallback of others."""

    kind: str
    enabled: bool = True
    severities: Annotated[tuple[Severity, ...], BeforeValidator(as_tuple)] = ("page", "ticket")
    streams: Names = ()
    rules: Names = ()
    heartbeats: bool = False
    fallback: str = ""
    timeout_us: Annotated[PositiveDuration, AfterValidator(_check_timeout)] = Field(10_000_000, alias="timeout")
    ca_file: CaFile = ""


class AlertmanagerChannel(ChannelTable):
    """Alertmanager: each alert goes to every instance, and again until the incident ends."""

    SECRET_CHECKS: ClassVar = {"bearer_token": receivers.check_single_word, "password": str}
    kind: Literal["alertmanager"] = "alertmanager"
    heartbeats: bool = True
    urls: Annotated[UrlList, AfterValidator(_check_count)]
    resend_us: Annotated[PositiveDuration, AfterValidator(_check_resend)] = Field(60_000_000, alias="resend")
    labels: Mapping[Annotated[str, AfterValidator(check_label_name)], str] = {}
    username: str = ""
    password: SecretStr = SecretStr("")
    password_file: str = ""
    bearer_token: SecretStr = SecretStr("")
    bearer_token_file: str = ""

    @model_validator(mode="after")
    def _check_authentication(self) -> Self:
        has_token, has_password = bool(self.read_secret("bearer_token")), bool(self.read_secret("password"))
        if bool(self.username) != has_password or (has_token and has_password):
            msg = "username and password go together, or bearer_token stands alone"
            raise ValueError(msg)
        return self


class PagerDutyChannel(ChannelTable):
    """PagerDuty, by its Events API v2."""

    SECRET_CHECKS: ClassVar = {"routing_key": receivers.check_single_word}
    REQUIRED_SECRETS: ClassVar = ("routing_key",)
    kind: Literal["pagerduty"] = "pagerduty"
    routing_key: SecretStr = SecretStr("")
    routing_key_file: str = ""
    url: Url = "https://events.pagerduty.com/v2/enqueue"


class SlackChannel(ChannelTable):
    """Slack, or a compatible service, by an incoming webhook."""

    SECRET_CHECKS: ClassVar = {"url": receivers.check_url, "template": receivers.check_template}
    REQUIRED_SECRETS: ClassVar = ("url",)
    kind: Literal["slack"] = "slack"
    url: SecretStr = SecretStr("")
    url_file: str = ""
    template: str = ""
    template_file: str = ""


class WebhookChannel(ChannelTable):
    """Webhook of the user: JSON with a signature of the sender."""

    SECRET_CHECKS: ClassVar = {"url": receivers.check_url, "secret": receivers.check_secret_length}
    REQUIRED_SECRETS: ClassVar = ("url",)
    kind: Literal["webhook"] = "webhook"
    url: SecretStr = SecretStr("")
    url_file: str = ""
    secret: SecretStr = SecretStr("")
    secret_file: str = ""
    headers: Annotated[Mapping[str, SecretStr], AfterValidator(receivers.check_headers)] = {}


class EmailChannel(ChannelTable):
    """E-mail, by an SMTP server."""

    SECRET_CHECKS: ClassVar = {"password": str, "template": receivers.check_template}
    kind: Literal["email"] = "email"
    host: str
    port: Annotated[int, BeforeValidator(receivers.check_port)] | None = None
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    username: str = ""
    password: SecretStr = SecretStr("")
    password_file: str = ""
    sender: MailAddress = Field(alias="from")
    to: Annotated[MailAddresses, AfterValidator(_check_count)]
    title: Template = ""
    template: str = ""
    template_file: str = ""

    @model_validator(mode="after")
    def _check_password(self) -> Self:
        has_password = bool(self.read_secret("password"))
        if bool(self.username) != has_password:
            msg = "username and password go together"
            raise ValueError(msg)
        if has_password and self.tls == "none":
            msg = 'a password goes through TLS alone: tls is "starttls" or "implicit"'
            raise ValueError(msg)
        return self


class ActionTable(ChannelTable):
    """Keys of channels that act. They act for named rules alone, and for so many incidents within a span at most."""

    rules: Annotated[Names, Field(min_length=1)]
    dry_run: bool = False
    most: PositiveInt = 4
    within_us: PositiveDuration = Field(3_600_000_000, alias="within")


class CommandChannel(ActionTable):
    """A command, which gets the notification as JSON on its standard input."""

    kind: Literal["command"] = "command"
    command: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(as_tuple), Field(min_length=1)]


class PauseChannel(ActionTable):
    """A delivery that is paused while an incident lasts."""

    kind: Literal["pause"] = "pause"
    delivery: str


class AppriseChannel(ChannelTable):
    """Any service that Apprise supports."""

    SECRET_CHECKS: ClassVar = {"urls": receivers.check_apprise_urls, "template": receivers.check_template}
    REQUIRED_SECRETS: ClassVar = ("urls",)
    kind: Literal["apprise"] = "apprise"
    urls: Annotated[SecretStr, BeforeValidator(_parse_secret_urls)] = SecretStr("")
    urls_file: str = ""
    title: Template = ""
    template: str = ""
    template_file: str = ""


AnyChannel = (
    AlertmanagerChannel
    | PagerDutyChannel
    | SlackChannel
    | WebhookChannel
    | EmailChannel
    | AppriseChannel
    | CommandChannel
    | PauseChannel
)
KINDS: Final[Mapping[str, type[AnyChannel]]] = {of.model_fields["kind"].default: of for of in get_args(AnyChannel)}


class ChannelNames(NamedTuple):
    """Names that a channel may refer to: of all channels, streams, rules and deliveries."""

    channels: Sequence[str]
    streams: Sequence[str]
    rules: Sequence[str] = ()
    deliveries: Sequence[str] = ()


def check_channels(channels: Mapping[str, AnyChannel], known: ChannelNames) -> list[InitErrorDetails]:
    """Check channels against the names that there are, and against each other."""
    names = known.channels
    found: list[InitErrorDetails] = []
    for name, channel in channels.items():
        where = ("channels", name, channel.kind)
        found += error_details.find_unknown_names((*where, "streams"), channel.streams, known.streams, "stream")
        found += error_details.find_unknown_names((*where, "rules"), channel.rules, known.rules, "rule")
        if isinstance(channel, PauseChannel) and channel.delivery not in known.deliveries:
            nearest = error_details.suggest_names(channel.delivery, known.deliveries)
            told = f"there is no [deliver.{channel.delivery:.80}]{nearest}"
            found.append(error_details.error_at((*where, "delivery"), channel.delivery, told))
        if channel.fallback and channel.fallback not in names:
            told = f"there is no channel {channel.fallback!r:.80}{error_details.suggest_names(channel.fallback, names)}"
            found.append(error_details.error_at((*where, "fallback"), channel.fallback, told))
        elif name in _list_fallbacks(name, channels):
            told = "a channel falls back on another one, and in the end never on itself"
            found.append(error_details.error_at((*where, "fallback"), channel.fallback, told))
    return found


def _list_fallbacks(name: str, channels: Mapping[str, AnyChannel]) -> list[str]:
    """Return the chain of fallbacks of a channel, each once."""
    after: list[str] = []
    while (channel := channels.get(name)) and channel.fallback and channel.fallback not in after:
        name = channel.fallback
        after.append(name)
    return after
