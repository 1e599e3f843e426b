"""E-mail channel, by SMTP: one mail thread per incident, its end included.

The server's 4xx are tried again; so are those 5xx that are about sender and recipients, which a person can
fix. Of a mail that it has read, a 5xx is for good. A mail that one of its readers is refused for is taken when another
gets it. ``Message-ID`` is the same at each try, so that a mail that was sent twice is shown once; all of an incident
refer to one id.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.errors import MessageError
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import sha256
from typing import Final

import structlog

from hopwatch.alerts.channels import addresses, http, template_texts, texts
from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.events import Notification
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import Clock, SystemClock
from hopwatch.monitor.settings.channels import EmailChannel

PORTS: Final = {"starttls": 587, "implicit": 465, "none": 25}
MAX_BODY: Final = 20_000
MAX_READ_BYTES: Final = 262_144
"""Most bytes that are read from a server in one connection."""
CUT_EVERY_S: Final = 0.2
"""Interval at which a connection past its deadline is shut down, until it is closed."""

_log = structlog.get_logger("hopwatch")


class Mail:
    """Channel to a list of recipients, through one mail server."""

    def __init__(self, name: str, settings: EmailChannel, clock: Clock | None = None) -> None:
        """Take the settings; nothing is sent yet."""
        self._name, self._settings, self._clock = name, settings, clock or SystemClock()
        self._password, self._template = settings.read_secret("password"), settings.read_secret("template")
        self._port = settings.port or PORTS[settings.tls]
        self._context = http.create_tls_context(settings.ca_file)
        self._who = f"the mail server {settings.host}:{self._port}"

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Send it to the mail server."""
        try:
            mail = self._build_mail(delivery, now_us)
        except (MessageError, ValueError) as error:
            return Failure(f"no mail can be made of it: {texts.to_one_line(str(error)):.200}", is_for_good=True)
        timeout_s = self._settings.timeout_us / 1e6
        ends_s = self._clock.monotonic_s() + timeout_s
        try:
            return self._hand_in(mail, lambda: ends_s - self._clock.monotonic_s())
        except smtplib.SMTPDataError as error:
            return Failure(self._describe_error(error), is_for_good=error.smtp_code >= 500)  # noqa: PLR2004 - the class of a reply is its first digit
        except (smtplib.SMTPException, OSError) as error:
            late = self._clock.monotonic_s() >= ends_s
            return Failure(
                f"{self._who} did not answer within {timeout_s:g} s" if late else self._describe_error(error)
            )

    def close(self) -> None:
        """Nothing is kept open."""

    def _hand_in(self, mail: EmailMessage, left_s: Callable[[], float]) -> Outcome:
        settings = self._settings
        implicit = self._context if settings.tls == "implicit" else None
        with _Server(settings.host, self._port, implicit, left_s) as smtp:
            if settings.tls == "starttls":
                smtp.starttls(context=self._context)
            if settings.username:
                smtp.login(settings.username, self._password)
            refused = smtp.send_message(mail, settings.sender, list(settings.to))
        if refused:
            # The others have it: a retry would notify them twice.
            _log.warning("a mail is refused for some", channel=self._name, readers=sorted(refused))
        return Accepted()

    def _build_mail(self, delivery: Delivery, now_us: int) -> EmailMessage:
        values = template_texts.build_values(delivery)
        title = template_texts.render_text(self._name, self._settings.title, values) or texts.format_title(
            delivery.notification
        )
        text = template_texts.render_text(self._name, self._template, values)
        usual = texts.format_body(delivery.notification, MAX_BODY, is_acknowledged=delivery.is_acknowledged)
        mail = EmailMessage(policy=SMTP)
        mail["Subject"] = texts.shorten(texts.to_one_line(title), texts.MAX_TITLE)
        mail["From"] = self._settings.sender
        mail["To"] = ", ".join(self._settings.to)
        mail["Date"] = format_datetime(datetime.fromtimestamp(now_us // 1_000_000, UTC))
        thread = build_thread_id(delivery.notification, self._settings.sender)
        mail["Message-ID"] = build_message_id(delivery, self._settings.sender)
        mail["In-Reply-To"] = mail["References"] = thread
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(texts.shorten(text or usual, MAX_BODY))
        return mail

    def _describe_error(self, error: Exception) -> str:
        code, reply = getattr(error, "smtp_code", 0), getattr(error, "smtp_error", b"") or str(error)
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            code, reply = next(iter(error.recipients.values()))
        words = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
        words = words.replace(self._password, "***") if self._password else words
        failed = "does not take it" if isinstance(error, smtplib.SMTPException) else "cannot be reached"
        answered = f"answered {code}" if code > 0 else failed
        return f"{self._who} {answered}: {texts.shorten(texts.to_one_line(words), http.MAX_REASON)}"


def build_thread_id(notification: Notification, sender: str) -> str:
    """Build the id that all mails of one incident refer to, from its key and its beginning."""
    return _build_id(f"{notification.key} {notification.since_us}", sender)


def build_message_id(delivery: Delivery, sender: str) -> str:
    """Build the id of a mail, the same at each try of one notification."""
    return _build_id(f"{delivery.notification.key} {delivery.number} {delivery.created_us}", sender)


def _build_id(text: str, sender: str) -> str:
    return f"<{sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}@{sender.rpartition('@')[2]}>"


class _Server(smtplib.SMTP):
    """Connection to a mail server at a checked address, shut down at its deadline.

    A timeout per read is not enough: a server that sends byte by byte would hold the connection for ever.
    """

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None, left_s: Callable[[], float]) -> None:
        self._context, self._left_s, self._done = context, left_s, threading.Event()
        self.sock: socket.socket | None = None
        threading.Thread(target=self._cut, name="hopwatch-mail", daemon=True).start()
        try:
            super().__init__(host, port, timeout=addresses.remaining_s(left_s))
        except BaseException:
            self._done.set()
            raise

    def close(self) -> None:
        """Close the connection, and stop the thread that watches it."""
        self._done.set()
        super().close()

    def getreply(self) -> tuple[int, bytes]:
        """Read a reply, as long as the server stays within the bytes of one connection."""
        if self.file is None and self.sock is not None:
            self.file = _BoundedReader(self.sock)
        return super().getreply()

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        sock = addresses.connect(host, port, self._left_s)
        sock.settimeout(timeout)
        return self._context.wrap_socket(sock, server_hostname=host) if self._context else sock

    def _cut(self) -> None:
        self._done.wait(max(self._left_s(), 0.0))
        # Repeatedly: during the TLS handshake a connection has two sockets.
        while not self._done.wait(CUT_EVERY_S):
            if self.sock is not None:
                with suppress(OSError):
                    self.sock.shutdown(socket.SHUT_RDWR)


class _BoundedReader:
    """Reader of at most :data:`MAX_READ_BYTES` bytes of lines: a reply may have lines without end."""

    def __init__(self, sock: socket.socket) -> None:
        self._file, self._left_bytes = sock.makefile("rb"), MAX_READ_BYTES

    def readline(self, most_bytes: int) -> bytes:
        """Return the next line, or what there is of it; raise OSError where it is too much."""
        line = self._file.readline(most_bytes)
        self._left_bytes -= len(line)
        if self._left_bytes < 0:
            raise OSError(f"it said more than {MAX_READ_BYTES:,} bytes")
        return line

    def close(self) -> None:
        """Close the file."""
        self._file.close()
