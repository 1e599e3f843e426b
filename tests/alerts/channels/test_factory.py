"""Tests of channels as a whole: which there are, what goes where, who takes over, and that none raises."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.channels.factory import GuardedChannel, build_routes, open_channels
from hopwatch.alerts.events import AlertKind, Severity, unqualify_key
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.settings import load
from hopwatch.monitor.settings.channels import AlertmanagerChannel, AnyChannel, PagerDutyChannel, WebhookChannel
from tests.support.deliveries import NOW_US, delivery, firing, storm
from tests.support.http_receiver import answers, receiving

STREAMS: Final = '[streams.orders]\npath = "a -> b"\n[streams.refunds]\npath = "a -> b"\n'
SLACK: Final = 'kind = "slack"\nurl = "https://slack.example/x"\n'


def channels(folder: Path, **tables: str) -> dict[str, AnyChannel]:
    """Return the channels of a configuration."""
    file = folder / "h.toml"
    file.write_text(STREAMS + "".join(f"[alerts.channels.{name}]\n{text}\n" for name, text in tables.items()))
    return dict(load(file, flags={}, environ={}).alerts.channels)


def test_every_kind_opens_and_closes(tmp_path: Path) -> None:
    """Without asking anybody anything."""
    made = channels(
        tmp_path,
        am='kind = "alertmanager"\nurls = ["http://127.0.0.1:1", "http://127.0.0.1:2"]',
        pd='kind = "pagerduty"\nrouting_key = "k"',
        team=SLACK,
        hook='kind = "webhook"\nurl = "https://hook.example/"',
        mail='kind = "email"\nhost = "h"\nfrom = "a@b.example"\nto = ["c@d.example"]',
        rest='kind = "apprise"\nurls = ["json://127.0.0.1:1/x"]',
        off=SLACK + "enabled = false",
    )
    found = open_channels(made)
    assert list(found.channels) == ["am", "pd", "team", "hook", "mail", "rest"]
    assert found.fallbacks == {}
    found.close()


def test_a_notification_goes_to_whoever_cares(tmp_path: Path) -> None:
    """By severity and stream; a storm to whoever cares for any stream, a heartbeat to who watches for it."""
    made = channels(
        tmp_path,
        am='kind = "alertmanager"\nurls = ["http://127.0.0.1:1"]',
        pages=SLACK + 'severities = ["page"]',
        refunds=SLACK + 'streams = ["refunds"]',
        reserve=SLACK + "severities = []",
        off=SLACK + "enabled = false",
        pulse=SLACK + "severities = []\nheartbeats = true",
    )
    through = build_routes(made)
    assert through(firing()) == ["am", "pages"]
    assert through(firing(labels={"stream": "refunds"}, severity=Severity.TICKET)) == ["am", "refunds"]
    assert through(storm()) == ["am", "pages", "refunds"]
    assert through(firing(kind=AlertKind.HEARTBEAT, labels={}, severity=Severity.TICKET)) == ["am", "pulse"]


def test_what_takes_over_is_never_switched_off(tmp_path: Path) -> None:
    """A disabled fallback is replaced by its own fallback."""
    made = channels(
        tmp_path,
        a=SLACK + 'fallback = "b"',
        b=SLACK + 'fallback = "c"\nenabled = false',
        c=SLACK,
        d=SLACK + 'fallback = "e"',
        e=SLACK + "enabled = false",
    )
    assert open_channels(made).fallbacks == {"a": "c"}


class Broken:
    """A channel that is at fault."""

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Fail as no channel may."""
        raise RuntimeError(f"T0P-5ECRET {delivery} {now_us}")

    def close(self) -> None:
        """The same."""
        raise RuntimeError("T0P-5ECRET")


def test_a_channel_that_is_at_fault_is_a_failure_that_passes() -> None:
    """The failure names the channel and the kind of fault, not its text, which may be a secret."""
    with capture_logs() as logs:
        channel = GuardedChannel("ops", Broken())
        made = channel.send(delivery(), 0)
        channel.close()
    assert made == Failure("a fault of Hopwatch's own in the channel ops: RuntimeError")
    said: list[Any] = [(log["event"], log["channel"], log["error"]) for log in logs]
    assert said == [
        ("a channel is at fault", "ops", "RuntimeError"),
        ("a channel does not close", "ops", "RuntimeError"),
    ]


def test_a_file_that_is_gone_when_channels_open_is_told(tmp_path: Path) -> None:
    """A file that has gone since the settings were read is an error with its path."""
    key = tmp_path / "key"
    key.write_text("k\n")
    made = channels(tmp_path, pd='kind = "pagerduty"\nrouting_key_file = "key"')
    key.unlink()
    told = r"\[alerts.channels.pd\] cannot be opened: the file .*/key cannot be read: No such file or directory"
    with pytest.raises(ConfigurationError, match=told):
        open_channels(made)


def test_two_installations_share_a_receiver() -> None:
    """Two installations have distinct keys and alerts, so that neither ends an incident of the other."""
    key = "R0utingKey-of-32-characters-long"
    tables: dict[str, AnyChannel] = {}
    with receiving(answers(202)) as receiver:
        tables["pd"] = PagerDutyChannel.model_validate({"routing_key": key, "url": receiver.url()})
        tables["hook"] = WebhookChannel.model_validate({"url": receiver.url()})
        tables["am"] = AlertmanagerChannel.model_validate({"urls": [receiver.url()]})
        for installation in ("eu", "us", ""):
            with closing(open_channels(tables, installation=installation)) as found:
                assert {type(one.send(delivery(), NOW_US)) for one in found.channels.values()} == {Accepted}
    bodies = [json.loads(request.body) for request in receiver.requests]
    assert [one["dedup_key"] for one in bodies[::3]] == [
        "eu:loss/page/orders",
        "us:loss/page/orders",
        "loss/page/orders",
    ]
    hooks = receiver.requests[1::3]
    assert [json.loads(one.body)["key"] for one in hooks] == [one["dedup_key"] for one in bodies[::3]]
    assert len({one.headers["idempotency-key"] for one in hooks}) == 3
    assert [alerts[0]["labels"].get("installation") for alerts in bodies[2::3]] == ["eu", "us", None]


@pytest.mark.parametrize("key", ["eu:loss/page/orders", "loss/page/orders"])
def test_a_key_is_found_again_in_either_form(key: str) -> None:
    """As a receiver shows it, and as the store has it."""
    assert unqualify_key(key, "eu") == "loss/page/orders"
    assert unqualify_key(key, "") == key
