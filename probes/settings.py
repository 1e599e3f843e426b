"""Settings of a probe, checked once, before anything starts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Final

from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.limits import MAX_LABEL_CHARS, MAX_LABELS, MAX_NAME_CHARS, NAME_PATTERN
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.event_times import MAX_EVENT_US
from hopwatch.probes.sinks import Sink, SinkOpener

_SINK_METHODS: Final = ("send", "failed", "tick", "settle", "close")
_MAX_KEPT_CHARS: Final = MAX_NAME_CHARS - len("-4194304")
"""Characters of a name that leave room for a process id."""


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """Arguments of a probe; without a ``name``, host name and process id make one.

    Raises:
        ProbeError: an argument is invalid.
    """

    stream: str
    node: str
    sink: str | Sink | SinkOpener | None
    name: str | None
    labels: dict[str, str]
    flush_every_s: float | None
    heartbeat_every_s: float
    most_stamps: int
    most_bytes: int
    announce_within_s: float
    max_age_s: float | None
    close_on_sigterm: bool
    clock: Clock

    def __post_init__(self) -> None:
        """Check every argument; a host may pass anything, whatever the types say."""
        check_name("stream", self.stream)
        check_name("node", self.node)
        if self.name is not None:
            _check_probe(self.name)
        _check_labels(self.labels)
        _check_sink(self.sink)
        for what in ("heartbeat_every_s", "most_stamps", "most_bytes", "announce_within_s"):
            _check_number(what, getattr(self, what))
        if self.flush_every_s is not None:
            _check_number("flush_every_s", self.flush_every_s)
        if self.max_age_s != float("inf") and self.max_age_s is not None:
            _check_number("max_age_s", self.max_age_s)

    @property
    def max_age_us(self) -> int | None:
        """Return the maximum age of an event time in µs; None for any age."""
        is_any = self.max_age_s is None or self.max_age_s * 1e6 >= MAX_EVENT_US
        return None if is_any else int((self.max_age_s or 0.0) * 1e6)

    def for_child(self) -> ProbeSettings:
        """Return the settings for the child of a fork, with a unique name.

        Raises:
            ProbeError: the sink was given as an object, to which parent and child would both write.
        """
        if not isinstance(self.sink, str):
            raise ProbeError(
                f"a sink given as an object stays with the parent, got {type(self.sink).__name__}: give a URL"
            )
        return replace(self, name=self.name and f"{self.name[:_MAX_KEPT_CHARS]}-{os.getpid()}")


def check_name(what: str, name: object) -> None:
    """Check the name of a stream or node.

    Raises:
        ProbeError: it is invalid.
    """
    if not (isinstance(name, str) and NAME_PATTERN.fullmatch(name)):
        raise ProbeError(f"a {what} is 1 to {MAX_NAME_CHARS} of the characters A-Za-z0-9._-, got {name!r:.60}")


def _check_probe(name: object) -> None:
    if not name or not _is_text(name, MAX_NAME_CHARS):
        raise ProbeError(f"a probe's name is a text of 1 to {MAX_NAME_CHARS} characters, got {name!r:.60}")


def _check_labels(labels: object) -> None:
    if not isinstance(labels, dict) or len(labels) > MAX_LABELS:
        got = len(labels) if isinstance(labels, dict) else type(labels).__name__
        raise ProbeError(f"labels are a dict of at most {MAX_LABELS}, got {got}")
    for part in (part for label in labels.items() for part in label):
        if not _is_text(part, MAX_LABEL_CHARS):
            raise ProbeError(f"a label is a text of at most {MAX_LABEL_CHARS} characters, got {part!r:.80}")


def _check_sink(sink: object) -> None:
    is_sink = all(callable(getattr(sink, name, None)) for name in _SINK_METHODS)
    if not (sink is None or isinstance(sink, str | SinkOpener) or is_sink):
        raise ProbeError(f"a sink is a URL or an object with {', '.join(_SINK_METHODS)}, got {type(sink).__name__}")


def _check_number(what: str, number: object) -> None:
    if not isinstance(number, int | float) or not 0 < number < float("inf"):
        raise ProbeError(f"{what} is a number over 0, got {number!r:.60}")


def _is_text(value: object, most_chars: int) -> bool:
    """Return whether a value is a text that the wire can carry: bounded, and without lone surrogates."""
    return isinstance(value, str) and len(value) <= most_chars and not any("\ud800" <= c <= "\udfff" for c in value)
