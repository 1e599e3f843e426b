"""Failures of Spark in one line: the cause inside its long report, and what to do."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Final

from hopwatch.monitor.errors import CheckpointError, DependencyError, HopwatchError, StoreError, TransportError
from hopwatch.monitor.spark import connector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hopwatch.monitor.spark.job import JobContext

_DAMAGED: Final = "|".join(
    rf"{beginning}[^\n]*"
    for beginning in (
        "Error reading (?:delta|changelog|snapshot) file",
        "CANNOT_LOAD_STATE_STORE",
        "Incomplete log file",
        "Failed to read log file",
    )
)

_CAUSES: Final[tuple[tuple[str, type[HopwatchError], str], ...]] = (
    # First: it names what is full, and the driver's own words stand before it.
    (r"Store(?:Taken)?Error: (.*)", StoreError, "{0}"),
    (
        r"No space left on device",
        DependencyError,
        "the disk is full: free some space and start again, nothing is lost",
    ),
    (r"CheckpointError: (.*)", CheckpointError, "{0}"),
    (
        r"FileNotFoundError: .*'(.*\.seg)'",
        TransportError,
        "the segment {0} is gone before its windows were judged: do not delete from the spool, the monitor does",
    ),
    (r"PermissionError: .*'(.*)'", TransportError, "{0} cannot be read by this user: grant read on it"),
    (
        r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network)Exception: ([^\n]*)",
        TransportError,
        "the brokers of {source} do not answer: {0}; nothing is lost: look whether they run, and start again",
    ),
    (
        rf"({_DAMAGED})",
        CheckpointError,
        "the checkpoint {checkpoint} is damaged ({0}): put it and the store aside to begin anew",
    ),
)

_WORKER_LATE: Final = "Python worker failed to connect back"
"""Words of Spark if a Python worker has not connected within 10 s, a limit that no setting moves."""
_IS_CAUSE: Final = re.compile("Error|Exception|Invalid")
_OF_JAVA: Final = re.compile(r"^(Caused by|Exception in thread \"\w+\"):? ")
"""Prefix of a cause in Java's reports."""
_JAVA_ENDED: Final = "JAVA_GATEWAY_EXITED"


def is_worker_late(failure: Exception) -> bool:
    """Return whether a stream died because its Python worker was not up in time, as on a machine that is overloaded.

    Nothing has been read by then, so the stream may be started again at once.
    """
    return _WORKER_LATE in str(failure)


def find_known_cause(failure: Exception, place: JobContext) -> HopwatchError | None:
    """Return the error to raise for a failure of Spark's: the first known cause, none if there is none."""
    text = str(failure)
    for pattern, error, message in _CAUSES:
        found = re.search(pattern, text)
        if found:
            return error(message.format(*found.groups(), checkpoint=place.checkpoint, source=place.source))
    return None


def stream_error(failure: Exception, place: JobContext) -> HopwatchError:
    """Return the error to raise for a stream that died: the first known cause, else the end of Spark's own report."""
    cause = find_known_cause(failure, place)
    if cause is not None:
        return cause
    advice = "the whole report is in Spark's log, nothing is lost: start again"
    return DependencyError(f"the stream died: {_last_cause(str(failure))}; {advice}")


def start_error(raised: str, printed: str, log: Path) -> DependencyError:
    """Return the error to raise if Spark did not start; a Java that ended says why only in the log."""
    unresolved = re.search(r"unresolved dependency: ([^\]\s]*)", printed)
    if unresolved:
        what = f"Spark cannot fetch {unresolved[1].rstrip(':')}"
        advice = f"let this machine reach Maven's repository, or put the jars into {connector.JARS}"
        return DependencyError(f"{what}: {advice}; its log is {log}")
    cause = next(_causes(printed.splitlines()), raised)[:400] if _JAVA_ENDED in raised else _last_cause(raised)
    return DependencyError(f"Spark does not start: {cause}; its log is {log}")


def java_error(status: int | None, log: Path) -> DependencyError:
    """Return the error to raise for a Java that answers no more; ``status`` is what it ended with, if it has."""
    match status:
        case None:
            what = "Java does not answer any more"
        case _ if status == -signal.SIGKILL:
            what = "Java was killed: by the system, for want of memory, or by somebody"
        case _ if status < 0:
            what = f"Java was ended by signal {-status}"
        case _:
            what = f"Java ended by itself, with exit code {status}"
    return DependencyError(f"{what}; nothing is lost: start again, the log of Spark is {log}")


def _last_cause(text: str) -> str:
    return next(_causes(reversed(text.splitlines())), text.partition("\n")[0])[:400]


def _causes(lines: Iterable[str]) -> Iterator[str]:
    # A frame of a stack may have such a word in the name of a class.
    causes = (line.strip() for line in lines if _IS_CAUSE.search(line) and not line.lstrip().startswith("at "))
    return (_OF_JAVA.sub("", cause) for cause in causes)
