"""Tests of what goes through Apprise: it is told, it is waited for, and it says nothing that it should not."""

from __future__ import annotations

import json
import logging

import pytest

from alerts.channels.by_apprise import ByApprise
from alerts.channels.channel import Failed, Taken
from alerts.events import Event
from monitor.settings.channels import AppriseChannel
from tests.alerts.channels.made import LOST, NOW_US, delivery, firing
from tests.alerts.channels.receiver import Receiver, answers, hangs, receiving


def of(*receivers: Receiver, **more: str) -> ByApprise:
    """Return a channel to receivers, by Apprise's own JSON."""
    urls = [f"json://127.0.0.1:{receiver.port}/T0P-5ECRET" for receiver in receivers]
    return ByApprise("rest", AppriseChannel.model_validate({"urls": urls} | more))


def test_apprise_is_told_title_and_text() -> None:
    """And whether it is bad news."""
    with receiving(answers(200)) as receiver:
        channel = of(receiver)
        for told in (firing(), firing(event=Event.RESOLVED)):
            assert channel.send(delivery(told), NOW_US) == Taken()
        channel.close()
    first, last = (json.loads(request.body) for request in receiver.requests)
    assert (first["title"], first["type"]) == ("[page] lost in orders (loss)", "failure")
    assert first["message"].splitlines()[0] == LOST.summary
    assert (last["title"], last["type"]) == ("[page] resolved: lost in orders (loss)", "success")


def test_the_text_may_be_one_s_own() -> None:
    """Title and text."""
    with receiving(answers(200)) as receiver:
        of(receiver, title="{{ rule }}!", template="{{ total }} place").send(delivery(), NOW_US)
    told = json.loads(receiver.requests[0].body)
    assert (told["title"], told["message"]) == ("loss!", "1 place")


def test_all_services_have_to_take_it(caplog: pytest.LogCaptureFixture) -> None:
    """One that does not makes it a failure that passes; no URL is said or logged."""
    logging.getLogger("apprise").setLevel(logging.DEBUG)
    with caplog.at_level(logging.INFO), receiving(answers(200)) as good, receiving(answers(500)) as bad:
        channel = of(good, bad)
        assert channel.send(delivery(), NOW_US) == Failed("Apprise could not reach all of its services")
    assert "T0P" not in caplog.text + repr(channel)


def test_a_service_that_hangs_does_not_take_our_time() -> None:
    """It is waited for up to the deadline, and asked nothing more until it has ended."""
    with receiving(hangs) as receiver:
        channel = of(receiver, timeout="200ms")
        assert channel.send(delivery(), NOW_US) == Failed("Apprise did not end within 0.2 s")
        told = "Apprise is still busy with the notification before this one"
        assert channel.send(delivery(), NOW_US) == Failed(told)
