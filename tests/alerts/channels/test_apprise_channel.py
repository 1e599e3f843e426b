"""Tests of what goes through Apprise: it is told, it is waited for, and it says nothing that it should not."""

from __future__ import annotations

import json
import logging
import sys
from typing import Final
from unittest.mock import MagicMock

import apprise
import pytest

from hopwatch.alerts.channels import apprise_channel
from hopwatch.alerts.channels.apprise_channel import Apprise
from hopwatch.alerts.channels.apprise_process import notify
from hopwatch.alerts.channels.channel import Accepted, Failure
from hopwatch.alerts.events import Event
from hopwatch.monitor.settings.channels import AppriseChannel
from tests.support.deliveries import LOST, NOW_US, delivery, firing
from tests.support.http_receiver import Receiver, answers, floods, hangs, receiving

BOUNDED: Final = """
from hopwatch.alerts.channels import apprise_process
apprise_process.MEMORY_BYTES = 600 * 2**20
apprise_process.main()
"""
"""The process, with a bound that is soon reached."""
PRINTING: Final = """
import apprise
from hopwatch.alerts.channels import apprise_process
apprise.Apprise.notify = lambda *_, **__: print("sent") is None
apprise_process.main()
"""
"""The process, with a plugin that prints."""


def of(*receivers: Receiver, **more: str) -> Apprise:
    """Return a channel to receivers, by Apprise's own JSON."""
    urls = [f"json://127.0.0.1:{receiver.port}/T0P-5ECRET" for receiver in receivers]
    return Apprise("rest", AppriseChannel.model_validate({"urls": urls} | more))


def test_apprise_is_told_title_and_text() -> None:
    """And whether it is bad news."""
    with receiving(answers(200)) as receiver:
        channel = of(receiver)
        for told in (firing(), firing(event=Event.RESOLVED)):
            assert channel.send(delivery(told), NOW_US) == Accepted()
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


def test_all_services_have_to_take_it() -> None:
    """One that does not makes it a failure that passes."""
    with receiving(answers(200)) as good, receiving(answers(500)) as bad:
        assert of(good, bad).send(delivery(), NOW_US) == Failure("Apprise could not reach all of its services")


def test_no_url_is_said_or_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """No URL is in an error or a log, whatever a plugin logs or raises: URLs hold secrets."""
    logging.getLogger("apprise").setLevel(logging.DEBUG)
    with caplog.at_level(logging.INFO), receiving(answers(500)) as bad:
        url = f"json://127.0.0.1:{bad.port}/T0P-5ECRET"
        assert notify([url], "t", "b", "failure") == "Apprise could not reach all of its services"
        monkeypatch.setattr(apprise.Apprise, "notify", MagicMock(side_effect=RuntimeError(url)))
        assert notify([url], "t", "b", "failure") == "Apprise fails with RuntimeError"
        assert "T0P" not in caplog.text + repr(of(bad))


def test_a_service_that_hangs_does_not_take_our_time() -> None:
    """A hanging service is waited for up to the deadline, and the next notification is sent anew."""
    with receiving(hangs) as receiver:
        channel = of(receiver, timeout="200ms")
        for _ in range(2):
            assert channel.send(delivery(), NOW_US) == Failure("Apprise did not end within 0.2 s")


def test_a_service_that_answers_without_end_does_not_take_our_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apprise reads all of an answer: the process that does so has a bound."""
    monkeypatch.setattr(apprise_channel, "COMMAND", (sys.executable, "-c", BOUNDED))
    with receiving(floods) as receiver:
        made = of(receiver, timeout="60s").send(delivery(), NOW_US)
    assert isinstance(made, Failure)
    assert made.why in {"Apprise fails with MemoryError", "Apprise could not reach all of its services"}


def test_a_process_that_dies_is_a_failure_that_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies, or has no answer, is a temporary failure with its exit code."""
    for program, code in (("import sys; sys.exit(9)", 9), ("print('hello')", 0)):
        monkeypatch.setattr(apprise_channel, "COMMAND", (sys.executable, "-c", program))
        told = f"Apprise's process ended with exit code {code} and no answer"
        with receiving(answers(200)) as receiver:
            assert of(receiver).send(delivery(), NOW_US) == Failure(told)


def test_what_a_plugin_prints_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notification that was taken is taken."""
    monkeypatch.setattr(apprise_channel, "COMMAND", (sys.executable, "-c", PRINTING))
    with receiving(answers(200)) as receiver:
        assert of(receiver).send(delivery(), NOW_US) == Accepted()
