"""State of a redrive: the messages that were sent, those that may have been, and a line for each run.

A line is written before messages are sent, and another one when the brokers have acknowledged them. So a message that
stands in the first alone may have been sent by a run that was killed: it is sent again, and reported as a repeat.
"""

from __future__ import annotations

import fcntl
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

from hopwatch.deliver.redrive.messages import RedriveKey
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.probes.taps.state_log import read_log, write_line

VERSION: Final = 1
SENDING: Final = "sending"
SENT: Final = "sent"
_WRITE_ADVICE: Final = "name a place that this user can write with --state"


class RedriveState:
    """State file of the redrives of one plan: JSON lines, each durable before the run goes on."""

    def __init__(self, path: Path, plan: Mapping[str, str]) -> None:
        """Set the state file, and the plan that it is of; no file is touched yet."""
        self.path, self._plan = path, dict(plan)
        self.sent: set[RedriveKey] = set()
        """Messages that the brokers have acknowledged."""
        self.in_doubt: set[RedriveKey] = set()
        """Messages that were about to be sent, and of which nobody knows whether they were."""
        self.repeated: set[RedriveKey] = set()
        """Messages that were in doubt and then sent again, since a run last came to its end."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the state against a second redrive, and read it; the lock ends with the process.

        Raises:
            TapUsageError: the file is no state of this plan.
            TapSourceError: another process has it, or it cannot be read or written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("a+")
        except OSError as error:
            raise self._build_error("written", error) from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                what = f"another redrive keeps its state in {self.path}"
                raise TapSourceError(f"{what}: wait for it, or name another file with --state") from None
            self._file = file
            self._load(file)
            yield

    def note_sending(self, keys: Iterable[RedriveKey]) -> None:
        """Note messages that are about to be sent.

        Raises:
            TapSourceError: the state cannot be written.
        """
        self._note(SENDING, list(keys))

    def note_sent(self, keys: Iterable[RedriveKey]) -> None:
        """Note messages that the brokers have acknowledged.

        Raises:
            TapSourceError: the state cannot be written.
        """
        self._note(SENT, list(keys))

    def note_run(self, run: Mapping[str, Any]) -> None:
        """Note who began or ended a run, and why.

        Raises:
            TapSourceError: the state cannot be written.
        """
        self._write({"run": dict(run)})

    def _note(self, what: str, keys: list[RedriveKey]) -> None:
        if keys:
            self._write({what: [_format_key(key) for key in keys]})
            self._apply(what, keys)

    def _apply(self, what: str, keys: Collection[RedriveKey]) -> None:
        if what == SENDING:
            self.repeated.update(self.in_doubt.intersection(keys))
            self.in_doubt.update(keys)
        else:
            self.sent.update(keys)
            self.in_doubt.difference_update(keys)

    def _load(self, file: TextIO) -> None:
        try:
            lines = read_log(file, VERSION, self._plan)
            if next(lines, None) is None:
                self._write({"version": VERSION, "plan": self._plan})
                return
            # What a kill left half a line of was not sent, or is in doubt.
            for line in lines:
                for what in (SENDING, SENT):
                    self._apply(what, [_parse_key(text) for text in line.get(what, ())])
                if "ended" in line.get("run", ()):
                    self.repeated.clear()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            advice = "name another file with --state"
            raise TapUsageError(f"{self.path} is not the state of this redrive ({error}): {advice}") from None

    def _write(self, line: Mapping[str, Any]) -> None:
        try:
            write_line(self._file, line)
        except OSError as error:
            raise self._build_error("written", error) from None

    def _build_error(self, what: str, error: OSError) -> TapSourceError:
        return TapSourceError(f"the state {self.path} cannot be {what}: {error.strerror}: {_WRITE_ADVICE}")


def _format_key(key: RedriveKey) -> str:
    return f"{key.window_start_us}/{key.message_id.hex()}"


def _parse_key(text: str) -> RedriveKey:
    start, _, digits = text.partition("/")
    return RedriveKey(int(start), bytes.fromhex(digits))
