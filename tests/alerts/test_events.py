"""Tests of the contract: what is written is what is read, and what cannot be read is told."""

from __future__ import annotations

import json

import pytest

from hopwatch.alerts.events import Event, EventError, Severity, build_key, from_json, to_json
from tests.support.notifications import notification


@pytest.mark.parametrize("event", Event)
def test_a_notification_goes_to_json_and_back(event: Event) -> None:
    """One line, with its version, and nothing of it lost."""
    made = notification(event, is_news=False)
    text = to_json(made)
    assert "\n" not in text
    assert json.loads(text)["version"] == 1
    assert from_json(text) == made


def test_what_a_later_program_has_added_is_left_out() -> None:
    """Unknown fields of a notification or an alert are ignored."""
    told = json.loads(to_json(notification()))
    told["more"] = told["alerts"][0]["more"] = 1
    assert from_json(json.dumps(told)) == notification()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a notification is a JSON object with a version, got ''"),
        ("[]", "a notification is a JSON object with a version, got '[]'"),
        ('{"version": 2}', "a notification of version 2 is not known here, only 1: use a newer program"),
        ('{"version": 1}', "a notification of version 1 lacks something: 'event'; got '{\"version\": 1}'"),
        (
            to_json(notification()).replace('"page"', '"wake"'),
            "a notification of version 1 lacks something: 'wake' is not a valid Severity; got",
        ),
    ],
)
def test_what_is_no_notification_is_refused(text: str, told: str) -> None:
    """With what was got."""
    with pytest.raises(EventError) as refused:
        from_json(text)
    assert str(refused.value).startswith(told)


def test_a_key_is_made_of_rule_severity_and_stream() -> None:
    """A storm has no stream; the longest names make a key of at most 200 characters."""
    assert build_key("loss", Severity.PAGE, "orders") == "loss/page/orders"
    assert build_key("loss", Severity.PAGE, "") == "loss/page/*"
    assert len(build_key("r" * 64, Severity.TICKET, "s" * 128)) <= 200
