"""Tests of e-mail: what is sent, what each reply comes to, and that no name gets out of its place."""

from __future__ import annotations

import email
from collections.abc import Mapping
from email.message import EmailMessage
from email.policy import default
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from structlog.testing import capture_logs

from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.channels.mail import MAX_BODY, Mail
from hopwatch.alerts.events import Event, Notification
from hopwatch.monitor.settings.channels import EmailChannel
from tests.alerts.channels.mail_server import SILENCE, TRICKLE, Postbox, taking_mail
from tests.support.deliveries import LOST, NOTIFICATIONS, NOW_US, delivery, firing
from tests.support.http_receiver import certificate, server_tls

PASSWORD = "T0P-5ECRET-password"  # noqa: S105 - of nothing


def of(box: Postbox | None, **more: Any) -> Mail:  # noqa: ANN401 - keys of the table
    """Return a channel through a server."""
    port = box.port if box else 25
    said = {
        "host": "127.0.0.1",
        "port": port,
        "tls": "none",
        "from": "hopwatch@host.example",
        "to": ["on-call@h.example"],
    }
    return Mail("mail", EmailChannel.model_validate(said | more))


def sent(told: Notification | None = None, **more: Any) -> EmailMessage:  # noqa: ANN401 - keys of the table
    """Send something to a good server, and return what it took."""
    with taking_mail() as box:
        assert of(box, **more).send(delivery(told), NOW_US) == Accepted()
    (text,) = box.mail
    return email.message_from_string(text, policy=default)


def outcome(says: Mapping[str, str], **more: Any) -> Outcome:  # noqa: ANN401 - keys of the table
    """Send to a server that says this."""
    with taking_mail(says) as box:
        made = of(box, **more).send(delivery(), NOW_US)
    return Failure(made.why.replace(str(box.port), "PORT"), made.is_for_good) if isinstance(made, Failure) else made


def test_a_mail_is_a_mail() -> None:
    """A mail has a subject, a sender, a receiver, a date, and the mark that a machine wrote it."""
    mail = sent()
    assert {name: mail[name] for name in ("Subject", "From", "To", "Date", "Auto-Submitted")} == {
        "Subject": "[page] lost in orders (loss)",
        "From": "hopwatch@host.example",
        "To": "on-call@h.example",
        "Date": "Thu, 01 Jan 2026 00:06:00 +0000",
        "Auto-Submitted": "auto-generated",
    }
    assert mail.get_content().splitlines()[0] == LOST.summary


def test_the_mail_of_one_incident_is_one_thread() -> None:
    """Its end belongs to it, the next incident of the same key does not; a try more is the same mail."""
    with taking_mail() as box:
        channel = of(box)
        for told, number in ((firing(), 7), (firing(), 7), (firing(event=Event.RESOLVED), 8), (firing(since_us=0), 9)):
            channel.send(delivery(told, number=number), NOW_US)
    first, again, over, other = (email.message_from_string(text, policy=default) for text in box.mail)
    assert first["References"] == first["In-Reply-To"] == over["References"] != other["References"]
    assert first["Message-ID"] == again["Message-ID"] != over["Message-ID"]
    assert first["Message-ID"].endswith("@host.example>")


def test_the_text_may_be_one_s_own() -> None:
    """Title and text."""
    mail = sent(title="{{ rule }}!", template="{{ total }} at {{ at_us|time }}")
    assert (mail["Subject"], mail.get_content().strip()) == ("loss!", "1 at 2026-01-01T00:05:00Z")


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_a_password_goes_through_tls(tls: str, tmp_path: Path) -> None:
    """A password is sent only over TLS, to a server whose certificate is verified."""
    file = certificate(tmp_path)
    told = {"tls": tls, "username": "me", "password": PASSWORD}
    with taking_mail(context=server_tls(file), implicit=tls == "implicit") as box:
        assert of(box, **told, ca_file=str(file)).send(delivery(), NOW_US) == Accepted()
        refused = of(box, **told).send(delivery(), NOW_US)
    assert isinstance(refused, Failure)
    assert "certificate verify failed" in refused.why
    assert len(box.mail) == 1
    assert sum(line.startswith("AUTH") for line in box.commands) == 1


def test_without_tls_nothing_is_sent_to_a_server_that_is_to_have_it() -> None:
    """A server, or who stands before it, that knows no STARTTLS gets no mail."""
    told = "the mail server 127.0.0.1:PORT does not take it: STARTTLS extension not supported by server."
    assert outcome({}, tls="starttls") == Failure(told)


@pytest.mark.parametrize(
    ("says", "told", "is_for_good"),
    [
        ({"HELLO": "421 busy"}, "answered 421: busy", False),
        ({"MAIL": "550 not you"}, "answered 550: not you", False),
        ({"RCPT": "550 nobody of that name"}, "answered 550: nobody of that name", False),
        ({"DATA": "451 later"}, "answered 451: later", False),
        ({".": "452 full"}, "answered 452: full", False),
        ({".": "554 spam"}, "answered 554: spam", True),
    ],
)
def test_what_a_reply_comes_to(says: dict[str, str], told: str, is_for_good: bool) -> None:  # noqa: FBT001 - of a table
    """Only what is said of the mail itself is for good."""
    assert outcome(says) == Failure(f"the mail server 127.0.0.1:PORT {told}", is_for_good)


def test_a_password_that_is_repeated_is_not_quoted(tmp_path: Path) -> None:
    """And a wrong one is tried again: somebody mends it."""
    file = certificate(tmp_path)
    told = {"tls": "implicit", "username": "me", "password": PASSWORD, "ca_file": str(file)}
    with taking_mail({"AUTH": f"535 not {PASSWORD}"}, server_tls(file), implicit=True) as box:
        channel = of(box, **told)
        made = channel.send(delivery(), NOW_US)
    assert made == Failure(f"the mail server 127.0.0.1:{box.port} answered 535: not ***")
    assert PASSWORD not in repr(channel)


@pytest.mark.parametrize("reply", [SILENCE, TRICKLE])
@pytest.mark.parametrize("command", ["HELLO", "EHLO", "."])
def test_a_server_that_takes_its_time_does_not_take_ours(command: str, reply: str) -> None:
    """One deadline is for all of it."""
    told = "the mail server 127.0.0.1:PORT did not answer within 0.3 s"
    assert outcome({command: reply}, timeout="300ms") == Failure(told)


@pytest.mark.parametrize("command", ["HELLO", "EHLO", "."])
def test_a_server_that_says_too_much_is_not_heard_out(command: str) -> None:
    """A reply of lines without end takes neither memory nor time."""
    made = outcome({command: "\r\n".join(["250-" + "x" * 500] * 2_000)}, timeout="60s")
    assert isinstance(made, Failure)
    assert "it said more than 262,144 bytes" in made.why


def test_a_server_that_is_not_there_is_tried_again() -> None:
    """A server that cannot be reached, or whose address is refused, is a temporary failure."""
    with taking_mail() as box:
        pass
    assert of(box).send(delivery(), NOW_US) == Failure(
        f"the mail server 127.0.0.1:{box.port} cannot be reached: [Errno 111] Connection refused"
    )
    refused = of(None, host="169.254.1.1").send(delivery(), NOW_US)
    assert isinstance(refused, Failure)
    assert "169.254.1.1, link-local" in refused.why


def test_a_mail_that_one_reader_is_refused_for_is_taken() -> None:
    """The other has it, and to try again would tell him twice; the log names who has not."""
    with taking_mail({"rcpt TO:<b@h.example>": "550 nobody"}) as box, capture_logs() as logs:
        assert of(box, to=["a@h.example", "b@h.example"]).send(delivery(), NOW_US) == Accepted()
    assert len(box.mail) == 1
    (told,) = logs
    assert (told["event"], told["readers"]) == ("a mail is refused for some", ["b@h.example"])


@cache
def titled() -> Mail:
    """Return a channel whose titles are what is told."""
    return of(None, title="{{ summary }}")


@given(NOTIFICATIONS)
def test_no_name_gets_out_of_its_place(told: Notification) -> None:
    """Headers stay ours, one line each and within bounds, for any characters in names."""
    mail = titled()._build_mail(delivery(told), NOW_US)
    parsed = email.message_from_bytes(mail.as_bytes(), policy=default)
    assert [name for name in parsed if name in {"Bcc", "Cc"}] == []
    assert len(parsed.get_all("To", [])) == 1
    assert len(str(parsed["Subject"])) <= 160
    assert len(parsed.get_content()) <= MAX_BODY + 1
