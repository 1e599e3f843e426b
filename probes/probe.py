"""``Probe``: what a service embeds beside its work. It never raises into its host, never blocks it, and counts what it drops.

    probe = Probe(stream="orders", node="router", sink="spool:./var/spool")
    with probe.passing(message_id, event_time):
        handle(message)
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import socket
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, ParamSpec

import numpy as np

from probes import recorder
from probes.clock import Clock, SystemClock
from probes.contract.ids import id_bytes
from probes.contract.limits import ID_BYTES, MAX_LABEL_CHARS, MAX_LABELS, MAX_NAME_CHARS, NAME_PATTERN, WINDOW_US
from probes.errors import ProbeError
from probes.recorder import Side, Stamp, Stamps
from probes.sender import Instance, Sender
from probes.sinks import Sink, open_sink

SINK_VARIABLE: Final = "HOPWATCH_SINK"
MOST_STAMPS: Final = 200_000
"""Stamps that wait for the sender at most, about 40 MB; those of arrays count one by one."""
CLOSE_S: Final = 2.0
QUEUE_FULL: Final = "queue full"

_ARRIVED, _DEPARTED = int(Side.ARRIVED), int(Side.DEPARTED)
_log = logging.getLogger("hopwatch.probe")
_alive: weakref.WeakSet[Probe] = weakref.WeakSet()
P = ParamSpec("P")


def _harmless(method: Callable[P, None]) -> Callable[P, None]:
    """Let nothing out of a method but what ``strict`` asks for."""

    @functools.wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(*args, **kwargs)
        except ProbeError:
            raise
        except Exception:  # noqa: BLE001 - a probe does not raise into its host
            _log.warning("a probe failed", exc_info=True)

    return guarded


class Probe:
    """Stamps the messages of one stream at one node.

    ``message_id`` is a ``uuid.UUID``, 16 bytes, an int or a str; ``event_time`` an aware ``datetime`` or int µs since
    1970; both are set where the message is made and carried along. Without a sink, given or in ``HOPWATCH_SINK``, a
    probe does nothing. ``strict=True``, for development, raises where production would drop and count.
    """

    def __init__(  # noqa: PLR0913 - what can be chosen, all but two by default
        self,
        stream: str,
        node: str,
        sink: str | Sink | None = None,
        *,
        probe: str | None = None,
        labels: dict[str, str] | None = None,
        strict: bool = False,
        flush_every_s: float = 2.0,
        heartbeat_every_s: float = 10.0,
        most_stamps: int = MOST_STAMPS,
        clock: Clock | None = None,
    ) -> None:
        """Start the probe and its thread.

        Raises:
            ProbeError: with ``strict`` only: a name, label or sink cannot be.
        """
        self.strict = strict
        self._sender: Sender | None = None
        self._clock: Clock = clock or SystemClock()
        self._wall_ns, self._monotonic_ns = self._clock.wall_ns, self._clock.monotonic_ns
        self._most = most_stamps
        self._waiting_in_arrays = 0
        self._arguments = (stream, node, sink, probe, dict(labels or {}), flush_every_s, heartbeat_every_s)
        try:
            self._begin()
        except Exception as error:
            if strict:
                raise ProbeError(str(error)) from error
            _log.warning("a probe does nothing: %s", error)
            self._silence()

    def _begin(self) -> None:
        """Become a running instance: at first, and again in the child of a fork."""
        stream, node, sink, name, labels, flush_every_s, heartbeat_every_s = self._arguments
        _check(stream, node, name, labels)
        chosen = sink if sink is not None else os.environ.get(SINK_VARIABLE)
        if chosen is None:
            _log.warning("a probe of %s at %s has no sink, neither given nor in %s: it does nothing", stream, node, SINK_VARIABLE)
            self._silence()
            return
        who = Instance(stream, node, name or f"{socket.gethostname()}-{os.getpid()}", self._wall_ns() // 1_000, labels)
        instance = f"{who.stream}.{who.node}.{who.probe}.{who.epoch_us}"
        opened = open_sink(chosen, instance) if isinstance(chosen, str) else chosen
        self._sender = Sender(who, opened, self._clock, flush_every_s=flush_every_s, heartbeat_every_s=heartbeat_every_s)
        self._queue = self._sender.queue
        self._append = self._queue.append
        _alive.add(self)
        self._sender.start()

    def _silence(self) -> None:
        """Become the twin that does nothing: a queue of no room takes every stamp and keeps none."""
        from collections import deque

        self._sender = None
        self._queue = deque(maxlen=0)
        self._append = self._queue.append

    def arrived(self, message_id: Any, event_time: Any) -> None:
        """Stamp ``in``: the message arrives at this node."""
        if len(self._queue) < self._most and not self.strict:
            self._append(Stamp(_ARRIVED, message_id, event_time, self._wall_ns()))
        else:
            self._carefully(_ARRIVED, message_id, event_time)

    def departed(self, message_id: Any, event_time: Any) -> None:
        """Stamp ``out``: the message leaves this node."""
        if len(self._queue) < self._most and not self.strict:
            self._append(Stamp(_DEPARTED, message_id, event_time, self._wall_ns()))
        else:
            self._carefully(_DEPARTED, message_id, event_time)

    def passing(self, message_id: Any, event_time: Any) -> _Passing:
        """Stamp ``in`` now and ``out`` when the block ends; an exception in the block stamps no ``out``."""
        return _Passing(self, message_id, event_time)

    def filtered(self, message_id: Any, event_time: Any, reason: str | None = None) -> None:
        """Stamp ``in`` of a message that ends here on purpose; it replaces :meth:`arrived` for it."""
        self._carefully(int(Side.FILTERED), message_id, event_time, reason)

    def rejected(self, message_id: Any, event_time: Any, reason: str | None = None) -> None:
        """Stamp ``in`` of a message that is refused as bad; it replaces :meth:`arrived` for it."""
        self._carefully(int(Side.REJECTED), message_id, event_time, reason)

    def arrived_many(self, message_ids: Any, event_times: Any) -> None:
        """Stamp ``in`` for arrays: ids of shape (n, 16) uint8, 16-byte items or integers; event times in µs or datetime64."""
        self._many(_ARRIVED, message_ids, event_times)

    def departed_many(self, message_ids: Any, event_times: Any) -> None:
        """Stamp ``out`` for arrays; given the arrays that arrived, arrival and departure become one observation each."""
        self._many(_DEPARTED, message_ids, event_times)

    @_harmless
    def flush(self) -> None:
        """Send all that is stamped, now, on this thread."""
        if self._sender is not None:
            self._sender.flush()
            self._sender.sink.tick()

    @_harmless
    def close(self) -> None:
        """Send what is left and the bye; give up after two seconds. Nothing is stamped any more."""
        sender = self._sender
        _alive.discard(self)
        self._silence()
        if sender is not None:
            sender.close(CLOSE_S)

    @property
    def dropped(self) -> int:
        """Observations that this probe had to drop so far."""
        return self._sender.dropped_total if self._sender is not None else 0

    def __enter__(self) -> Probe:
        """Return the probe."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the probe."""
        self.close()

    @_harmless
    def _carefully(self, side: int, message_id: Any, event_time: Any, reason: str | None = None) -> None:
        """Stamp, checking what the fast path leaves to the sender, and counting what does not fit."""
        if self.strict:
            _refuse_bad(message_id, event_time)
        if len(self._queue) >= self._most:
            self._overflow(event_time)
            return
        self._append(Stamp(side, message_id, event_time, self._wall_ns(), None if reason is None else str(reason)))

    def _overflow(self, event_time: Any, count: int = 1) -> None:
        if self._sender is None:
            return
        try:
            moment_us = recorder.check_event_time(recorder.event_time_us(event_time))
        except (ValueError, TypeError, OverflowError):
            moment_us = self._wall_ns() // 1_000
        self._sender.wake()
        self._sender.drop(moment_us // WINDOW_US * (WINDOW_US // 1_000), QUEUE_FULL, count)

    def _many(self, side: int, message_ids: Any, event_times: Any) -> None:
        try:
            ids, events = _packed_ids(message_ids), _microseconds(event_times)
            if len(ids) != len(events):
                raise ProbeError(f"there is one event time an id, got {len(ids)} ids and {len(events)} event times")
        except Exception as error:
            if self.strict:
                raise ProbeError(str(error)) from error
            self._overflow(None, _length(message_ids))
            return
        waiting = sum(len(stamp.event_times_us) for stamp in self._queue.copy() if isinstance(stamp, Stamps)) if len(self._queue) < _FEW else 0
        if waiting + len(self._queue) + len(ids) > max(self._most, len(ids) * 2):
            self._overflow(int(events[0]) if len(events) else None, len(ids))
            return
        self._append(Stamps(side, ids, events, self._wall_ns()))


_FEW: Final = 1_000


class _Passing:
    """One message inside the node: ``in`` at the start of the block, ``out`` at its end."""

    __slots__ = ("_event_time", "_message_id", "_probe", "_since_ns", "_wall_ns")

    def __init__(self, probe: Probe, message_id: Any, event_time: Any) -> None:
        self._probe, self._message_id, self._event_time = probe, message_id, event_time

    def __enter__(self) -> None:
        probe = self._probe
        self._since_ns = probe._monotonic_ns()
        self._wall_ns = probe._wall_ns()
        if len(probe._queue) < probe._most and not probe.strict:
            probe._append(Stamp(_ARRIVED, self._message_id, self._event_time, self._wall_ns))
        else:
            probe._carefully(_ARRIVED, self._message_id, self._event_time)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            return
        probe = self._probe
        # The time inside is monotonic: a step of the wall clock must not show as a duration.
        at_ns = self._wall_ns + probe._monotonic_ns() - self._since_ns
        if len(probe._queue) < probe._most:
            probe._append(Stamp(_DEPARTED, self._message_id, self._event_time, at_ns))
        else:
            probe._carefully(_DEPARTED, self._message_id, self._event_time)


def _check(stream: str, node: str, probe: str | None, labels: dict[str, str]) -> None:
    for what, name in (("stream", stream), ("node", node)):
        if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
            raise ProbeError(f"a {what} is 1 to 128 of the characters A-Za-z0-9._-, got {name!r:.60}")
    if probe is not None and not 1 <= len(probe) <= MAX_NAME_CHARS:
        raise ProbeError(f"a probe's name has 1 to {MAX_NAME_CHARS} characters, got {len(probe)}")
    if len(labels) > MAX_LABELS or any(len(str(part)) > MAX_LABEL_CHARS for label in labels.items() for part in label):
        raise ProbeError(f"labels are at most {MAX_LABELS} of at most {MAX_LABEL_CHARS} characters each, got {len(labels)}")


def _refuse_bad(message_id: Any, event_time: Any) -> None:
    try:
        id_bytes(message_id)
        recorder.check_event_time(recorder.event_time_us(event_time))
    except (ValueError, TypeError) as error:
        raise ProbeError(str(error)) from error


def _packed_ids(message_ids: Any) -> np.ndarray:
    """Return ids as pairs of 64 bits, copied: the host may change its array."""
    if isinstance(message_ids, bytes):
        return np.frombuffer(message_ids, np.uint64).reshape(-1, 2)
    ids = np.asarray(message_ids)
    if ids.dtype.kind in "iu" and ids.ndim == 1:
        if ids.dtype.kind == "i" and (ids < 0).any():
            raise ProbeError(f"an integer message id lies in 0 … 2^128 - 1, got {ids.min()}")
        pairs = np.zeros((len(ids), 2), ">u8")
        pairs[:, 1] = ids
        return pairs.view(np.uint64)
    if ids.dtype.itemsize == ID_BYTES and ids.dtype.kind in "SV" and ids.ndim == 1:
        return np.frombuffer(ids.tobytes(), np.uint64).reshape(-1, 2)
    if ids.dtype == np.uint8 and ids.ndim == 2 and ids.shape[1] == ID_BYTES:  # noqa: PLR2004
        return np.frombuffer(ids.tobytes(), np.uint64).reshape(-1, 2)
    raise ProbeError(f"ids in arrays are (n, 16) uint8, items of 16 bytes or integers, got {ids.dtype} of shape {ids.shape}")


def _microseconds(event_times: Any) -> np.ndarray:
    events = np.asarray(event_times)
    if events.dtype.kind == "M":
        events = events.astype("datetime64[us]")
    if events.dtype.kind not in "iuM" or events.ndim != 1:
        raise ProbeError(f"event times in arrays are integers in µs or datetime64, got {events.dtype} of shape {events.shape}")
    return events.astype(np.int64)


def _length(message_ids: Any) -> int:
    try:
        return len(message_ids) // (ID_BYTES if isinstance(message_ids, bytes) else 1)
    except TypeError:
        return 1


def _close_all() -> None:
    for probe in list(_alive):
        probe.close()


def _begin_again() -> None:
    """In the child of a fork: a new instance, with an empty queue and a place of its own; the parent's is not touched."""
    for probe in list(_alive):
        try:
            probe._begin()
        except Exception:  # noqa: BLE001 - a fork must not fail for a probe
            _log.warning("a probe does nothing in this child", exc_info=True)
            probe._silence()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_begin_again)
