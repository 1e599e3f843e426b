"""Tests of ``hopwatch deliver`` without a broker: what it takes, and what it says of what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopwatch.cli.delivery_builder import build_policy, describe_long_wait, find_needs, select_deliveries
from hopwatch.cli.main import main
from hopwatch.deliver.policy import Order
from hopwatch.monitor.settings import load
from hopwatch.monitor.settings.durations import ALLOWED_FORMS

KEY = "whsec_" + "QUJD" * 8
WEAK = (
    "a topic with replication 1 and min.insync.replicas 1 may lose what it has acknowledged, replication 3 and"
    " min.insync.replicas 2 does not: pass --allow-weak if that will do"
)
NO_ORIGIN = "name the origin: --stream of [gate.streams], or --delivery of [deliver.NAME]"
HEAD = '[streams.orders]\npath = "router -> deliver"\n'


def configured(folder: Path, *keys: str, url: str = "http://127.0.0.1:9/x", name: str = "billing") -> Path:
    """Return a configuration with one delivery."""
    config = folder / "hopwatch.toml"
    said = ['stream = "orders"', 'from = "kafka://127.0.0.1:1/orders"', f'url = "{url}"', *keys]
    config.write_text(f"{HEAD}[deliver.{name}]\n" + "\n".join(said))
    return config


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("other", "there is no [deliver.other], there are: billing"),
        ("retrier other", "there is no [deliver.other], there are: billing"),
        ("pause other", "there is no [deliver.other], there are: billing"),
        ("resume other", "there is no [deliver.other], there are: billing"),
        ("drain other", "there is no [deliver.other], there are: billing"),
        (
            "drain billing --timeout 5",
            f"--timeout: a duration is {ALLOWED_FORMS}; got '5'",
        ),
        (
            "create-topics --replication 1 --min-insync 1",
            WEAK,
        ),
    ],
)
def test_wrong_arguments_exit_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, told: str) -> None:
    """One line on stderr, and no broker is asked."""
    assert main(["deliver", *words.split(), "--config", str(configured(tmp_path))]) == 2
    assert capsys.readouterr() == ("", f"hopwatch: {told}\n")


def test_a_configuration_without_a_delivery_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the table that is missing."""
    config = tmp_path / "hopwatch.toml"
    config.write_text(HEAD)
    assert main(["deliver", "--config", str(config)]) == 2
    told = "hopwatch: there is nothing to deliver: add a table [deliver.NAME] with stream, from and url\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://169.254.169.254/x", "169.254.169.254, link-local, where clouds keep credentials"),
        ("http://[fd00:ec2::254]/x", "fd00:ec2::254, a cloud's metadata service"),
    ],
)
def test_a_receiver_that_is_no_receiver_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str, why: str
) -> None:
    """As channels of alerts refuse it, and before any broker is asked."""
    assert main(["deliver", "--config", str(configured(tmp_path, url=url))]) == 2
    assert capsys.readouterr().err == f"hopwatch: [deliver.billing] url is at {why}: nothing is sent there\n"


def test_brokers_that_are_away_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3."""
    assert main(["deliver", "--config", str(configured(tmp_path))]) == 3
    assert capsys.readouterr().err.startswith("hopwatch: the Kafka brokers 127.0.0.1:1 cannot be reached: ")


def test_a_policy_has_what_the_configuration_says(tmp_path: Path) -> None:
    """Each key of it, spans in seconds, and secrets that no line of it shows."""
    keys = ("batch = 5", "batch_bytes = 6", 'linger = "7ms"', "parallel = 8", 'timeout = "9s"', 'order = "key"',
            "tries = 4", 'retry = ["2s", "1m"]', 'max_age = "1h"', "recoverable = [408]", f'secret = "{KEY}"',
            'headers = { X-Team = "crimson" }')  # fmt: skip
    chosen = load(configured(tmp_path, *keys), flags={}, environ={})
    policy = build_policy(chosen.deliver["billing"])
    assert (policy.batch_max_events, policy.batch_max_bytes, policy.linger_s, policy.parallel) == (5, 6, 0.007, 8)
    assert (policy.timeout_s, policy.order, policy.local_tries, policy.tiers_s) == (9, Order.KEY, 4, (2, 60))
    assert (policy.max_age_s, policy.recoverable_statuses) == (3_600, frozenset({408}))
    assert (policy.signing_secrets, policy.headers) == ((KEY,), (("X-Team", "crimson"),))
    assert KEY not in policy.describe()
    assert "crimson" not in policy.describe()


def test_retries_that_outlast_the_amendments_of_a_window_are_told(tmp_path: Path) -> None:
    """The warning names both spans and the key to raise; without it messages that wait would leave windows UNKNOWN."""
    chosen = load(configured(tmp_path), flags={}, environ={})
    assert describe_long_wait(chosen, "billing", chosen.deliver["billing"]) == (
        "a message that needs all retries of billing waits up to 70.0 min, and windows of orders are amended for"
        " 60.0 min: they would stay UNKNOWN: raise amend_for of [streams.orders]"
    )
    short = load(configured(tmp_path, 'retry = ["30s", "5m"]'), flags={}, environ={})
    assert describe_long_wait(short, "billing", short.deliver["billing"]) == ""


def test_the_topics_of_a_delivery_follow_from_its_name(tmp_path: Path) -> None:
    """Its source first; a retry topic keeps records for a day longer than they wait."""
    chosen = load(configured(tmp_path, 'retry = ["1h"]'), flags={}, environ={})
    (said,) = select_deliveries(chosen, ()).values()
    needs = find_needs(said, "billing")
    assert [(need.place.topic, need.least_ms, need.is_source, need.is_compacted) for need in needs] == [
        ("orders", 3_600_000, True, False),
        ("orders.rejected", 86_400_000, False, False),
        ("orders.billing.retry.1h", 90_000_000, False, False),
        ("hopwatch.deliveries", 3_600_000, False, True),
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("list", NO_ORIGIN),
        (
            "list --stream a --delivery b",
            NO_ORIGIN,
        ),
        ("show x --delivery b", "--delivery names 'b', [deliver] has: billing"),
    ],
)
def test_an_origin_of_rejected_messages_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, told: str
) -> None:
    """A stream or a delivery; exit code 2."""
    assert main(["quarantine", *words.split(), "--config", str(configured(tmp_path))]) == 2
    assert capsys.readouterr().err == f"hopwatch: {told}\n"
