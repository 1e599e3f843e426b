"""Probe: the object that a service embeds to stamp its messages.

It never raises into its host, never blocks it, and counts the stamps that it drops::

    probe = Probe(stream="orders", node="router", sink="spool:./var/spool")
    with probe.passing(message_id, event_time):
        handle(message)
"""

# _Passing is a part of Probe; going through public methods would cost as much as a stamp at each of its ends.
# ruff: noqa: SLF001

from __future__ import annotations

import functools
import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Literal, ParamSpec, Self

from numpy.typing import ArrayLike

from hopwatch.probes import event_times, lifecycle, recorder, sigterm
from hopwatch.probes.arrays import EventTimes, MessageIds, build_columns
from hopwatch.probes.backlog import MAX_BYTES, MAX_LIGHT_CHARS, weigh_call
from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.contract.limits import MAX_CAUSE_CHARS
from hopwatch.probes.count_arguments import BAD_COUNT, CountArguments
from hopwatch.probes.environment import SINK_VARIABLE, read_sink_url
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.event_times import EventTime
from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.recorder import BAD_UNTIL, MessageId, Refusals, Stamp, StampArrays, StampKind
from hopwatch.probes.sender import ANNOUNCE_WITHIN_S, HEARTBEAT_EVERY_S, Sender
from hopwatch.probes.settings import ProbeSettings
from hopwatch.probes.sinks import Sink, SinkOpener, check_sink, open_sink
from hopwatch.probes.stamp_arguments import (
    BAD_ARRAYS,
    check_arguments,
    check_labels,
    clean_labels,
    clean_reason,
    label_schema,
    refuse_arrays,
)

MAX_STAMPS: Final = 200_000
"""Stamps that wait for the sender at most, about 40 MB; those of arrays count individually."""
MAX_AGE_S: Final = 86_400.0
"""Maximum age of an event time: an older one is probably in another unit, and a monitor would set it aside."""
CLOSE_S: Final = 2.0
QUEUE_FULL: Final = "queue full"
CLOSED: Final = "closed"

_ARRIVED, _DEPARTED, _FILTERED, _REJECTED, _DEFERRED, _REJECTED_INSIDE = map(int, StampKind)
_log = logging.getLogger("hopwatch.probe")
P = ParamSpec("P")


def _never_raising(*, is_stamp: bool = False) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorate a method so that it raises only ProbeError; a stamp that it cannot count becomes a hole."""

    def wrapped(method: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(method)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                method(*args, **kwargs)
            except ProbeError:
                raise
            except Exception:  # noqa: BLE001 - a probe does not raise into its host
                probe = args[0]
                sender = probe._sender or probe._ending if is_stamp and isinstance(probe, Probe) else None
                if sender is not None:
                    sender.lose_count()
                _log.warning("a probe failed to count a stamp" if is_stamp else "a probe failed", exc_info=True)

        return guarded

    return wrapped


class Probe:
    """Probe of one stream at one node: stamps messages as they arrive and leave.

    ``message_id`` is a ``uuid.UUID``, 16 bytes, an int or a str; ``event_time`` an aware ``datetime`` or int µs since
    1970 (not seconds). Both are set where the message is created, and travel with it. Without a sink, as an argument or
    in ``HOPWATCH_SINK``, a probe does nothing. ``strict=True``, for development, raises where production would drop and
    count a stamp, and log each cause once.
    """

    _sender: Sender | None
    _queue: deque[Stamp | StampArrays]
    _max_age_us: int | None

    def __init__(  # noqa: PLR0913 - what can be chosen, all but two by default
        self,
        stream: str,
        node: str,
        sink: str | Sink | SinkOpener | None = None,
        *,
        probe: str | None = None,
        labels: dict[str, str] | None = None,
        strict: bool = False,
        flush_every_s: float | None = None,
        heartbeat_every_s: float = HEARTBEAT_EVERY_S,
        most_stamps: int = MAX_STAMPS,
        most_bytes: int = MAX_BYTES,
        announce_within_s: float = ANNOUNCE_WITHIN_S,
        max_age_s: float | None = MAX_AGE_S,
        follows: bool = False,
        id_text: bool = True,
        close_on_sigterm: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """Start the probe and its thread, and announce it to the transport by a hello; log a warning if that fails.

        This takes some ms with a spool, and ``announce_within_s`` at most. In the child of a fork a probe starts as a
        new instance with its first stamp there; before that it costs nothing and leaves no trace.

        An event time that is more than ``max_age_s`` before its stamp, or more than 5 min ahead of it, is refused, and
        counts as dropped; None accepts any, for readers of old messages.

        ``id_text=False`` sends only the hashes of text ids, where the texts are secret or too many. ``follows`` is for
        taps, which read a file or a topic and may be behind: no window counts as complete before :meth:`caught_up`.

        SIGTERM closes probes, and then ends the process by its default action, if this is the main thread and nothing
        else handles the signal by then; ``close_on_sigterm=False`` leaves the signal alone.

        Stamps are sent every ``flush_every_s``; without a number every 2 s, and fewer than 32 every 5 s, so that many
        instances with few messages do not send a record for each.

        The queue is bounded by ``most_stamps``, and, for ids of more than 64 characters and the texts of arrays, by
        ``most_bytes``: stamps that find no room are dropped, and counted.

        Raises:
            ProbeError: a name, label, number or sink is invalid; with ``strict`` only.
        """
        self.stream, self.node, self.strict = stream, node, strict
        self._ending: Sender | None = None
        self._parent_state: object = None
        self._max_stamps, self._max_age_us = MAX_STAMPS, None
        self._is_closed, self._has_warned_closed = False, False
        # Drops of a probe that was closed in the child of a fork before it started there.
        self._dropped_unsent = 0
        self._follows, self._id_text = follows, id_text
        clock = clock or SystemClock()
        self._wall_ns, self._monotonic_ns = clock.wall_ns, clock.monotonic_ns
        self._waking, self._is_dormant, self._is_waking = threading.RLock(), False, False
        self._disable()
        try:
            sink = sink if sink is not None else read_sink_url()
            self._settings = ProbeSettings(
                stream, node, sink, probe, labels or {}, flush_every_s, heartbeat_every_s, most_stamps, most_bytes,
                announce_within_s, max_age_s, close_on_sigterm, clock,
            )  # fmt: skip
            self._start(self._settings, None)
        except Exception as error:
            if strict:
                raise ProbeError(str(error)) from error
            _log.warning("a probe does nothing: %s", error)

    def _start(self, asked: ProbeSettings, queue: deque[Stamp | StampArrays] | None) -> None:
        """Start and announce an instance: the first one, or that of a forked child."""
        if asked.sink is None:
            told = "a probe of %s at %s has no sink, neither given nor in %s: it does nothing"
            _log.warning(told, asked.stream, asked.node, SINK_VARIABLE)
            return
        name = asked.name or f"{socket.gethostname()}-{os.getpid()}"
        who = ProbeInstance(asked.stream, asked.node, name, self._wall_ns() // 1_000, dict(asked.labels))
        if isinstance(asked.sink, SinkOpener):
            sink = asked.sink.open(who.name)
        else:
            sink = open_sink(asked.sink, who.name, asked.clock) if isinstance(asked.sink, str) else asked.sink
        if self.strict:
            check_sink(sink)
        sender = Sender(
            who, sink, asked.clock, flush_every_s=asked.flush_every_s, heartbeat_every_s=asked.heartbeat_every_s,
            queue=queue, max_age_us=asked.max_age_us,
        )  # fmt: skip
        sender.backlog.id_text, sender.backlog.max_bytes = self._id_text, asked.most_bytes
        if self._follows:
            sender.follow()
        sender.start(asked.announce_within_s)
        self._max_stamps, self._max_age_us = asked.most_stamps, asked.max_age_us
        self._sender, self._queue, self._append = sender, sender.queue, sender.queue.append
        lifecycle.register(self)
        if asked.close_on_sigterm:
            sigterm.close_at_sigterm()

    def _disable(self) -> None:
        """Turn into a no-op: a queue of length 0 accepts every stamp and keeps none."""
        self._sender = None
        self._queue = deque(maxlen=0)
        self._append = self._queue.append

    def start_anew(self) -> None:
        """Become dormant: the next stamp starts a new instance, in the child of a fork or after a bye."""
        # Keep the parent's objects: to free 200,000 stamps would cost each of its children memory and time.
        self._parent_state, self._ending = (self._parent_state, self._sender, self._ending), None
        self._sender, self._queue, self._append = None, deque(), self._append_first
        self._is_closed, self._max_stamps = False, self._settings.most_stamps
        # Another thread of the parent may have held the lock.
        self._waking, self._is_dormant, self._is_waking = threading.RLock(), True, False

    def _append_first(self, stamp: Stamp | StampArrays) -> None:
        """Queue a stamp of a dormant probe, and start the probe."""
        self._queue.append(stamp)
        self._wake()

    def _wake(self) -> None:
        """Start a dormant probe; other threads wait meanwhile, a signal handler on the starting thread does not."""
        waking = self._waking
        # With a time-out: at the end of the interpreter the thread that holds the lock may be gone.
        if not waking.acquire(timeout=CLOSE_S):
            return
        try:
            if self._is_dormant and not self._is_waking:
                self._start_in_child()
        finally:
            waking.release()

    def _start_in_child(self) -> None:
        self._is_waking = True
        try:
            asked = self._settings.for_child()
            self._start(asked, self._queue)
            self._settings, self._is_dormant = asked, False
        except Exception as error:  # noqa: BLE001 - a fork must not fail for a probe
            self._is_dormant = False
            lifecycle.unregister(self)
            self._disable()
            _log.warning("a probe does nothing in this child: %s", error)
        finally:
            self._is_waking = False

    def arrived(
        self, message_id: MessageId, event_time: EventTime, *, labels: Mapping[str, object] | None = None
    ) -> None:
        """Stamp ``in``: the message arrives at this node.

        ``labels`` of the message, such as its partition, are added to those of the probe.
        """
        kind = type(message_id)
        is_light = (kind is not str and kind is not bytes) or len(message_id) <= MAX_LIGHT_CHARS  # type: ignore[arg-type]  # what is sized
        if is_light and len(self._queue) < self._max_stamps and not self.strict:
            if labels is None:
                self._append(Stamp(_ARRIVED, message_id, event_time, self._wall_ns()))
            else:
                own = clean_labels(labels)
                self._append(Stamp(_ARRIVED, message_id, event_time, self._wall_ns(), None, 0, own))
        else:
            self._stamp_checked(_ARRIVED, message_id, event_time, self._wall_ns(), labels=labels)

    def departed(
        self, message_id: MessageId, event_time: EventTime, *, labels: Mapping[str, object] | None = None
    ) -> None:
        """Stamp ``out``: the message leaves this node."""
        kind = type(message_id)
        is_light = (kind is not str and kind is not bytes) or len(message_id) <= MAX_LIGHT_CHARS  # type: ignore[arg-type]  # what is sized
        if is_light and len(self._queue) < self._max_stamps and not self.strict:
            if labels is None:
                self._append(Stamp(_DEPARTED, message_id, event_time, self._wall_ns()))
            else:
                own = clean_labels(labels)
                self._append(Stamp(_DEPARTED, message_id, event_time, self._wall_ns(), None, 0, own))
        else:
            self._stamp_checked(_DEPARTED, message_id, event_time, self._wall_ns(), labels=labels)

    def passing(self, message_id: MessageId, event_time: EventTime) -> _Passing:
        """Stamp ``in`` now and ``out`` when the block ends; an exception in the block stamps no ``out``.

        The block begins with ``with`` or with ``async with``.
        """
        return _Passing(self, message_id, event_time)

    def filtered(
        self,
        message_id: MessageId,
        event_time: EventTime,
        reason: str | None = None,
        *,
        labels: Mapping[str, object] | None = None,
    ) -> None:
        """Stamp ``in`` of a message that ends here on purpose; call it instead of :meth:`arrived`."""
        self._stamp_checked(_FILTERED, message_id, event_time, self._wall_ns(), reason, labels=labels)

    def rejected(
        self,
        message_id: MessageId,
        event_time: EventTime,
        reason: str | None = None,
        *,
        has_arrived: bool = False,
        labels: Mapping[str, object] | None = None,
    ) -> None:
        """Stamp ``in`` of a message that is refused as bad; call it instead of :meth:`arrived`.

        With ``has_arrived`` it is refused behind :meth:`arrived`, and its ``in`` stands already.
        """
        kind = _REJECTED_INSIDE if has_arrived else _REJECTED
        self._stamp_checked(kind, message_id, event_time, self._wall_ns(), reason, labels=labels)

    def deferred(
        self, message_id: MessageId, event_time: EventTime, until: EventTime, reason: str | None = None
    ) -> None:
        """Stamp a message that this node keeps for a later try; also behind :meth:`arrived`, and at each deferral anew.

        ``until``, a moment as event times are, is the latest at which the node will have stamped the message again: the
        next try with all that it may take. Until then the message is in flight, and no loss.
        """
        self._defer(message_id, event_time, until, reason)

    @_never_raising(is_stamp=True)
    def _defer(self, message_id: MessageId, event_time: EventTime, until: EventTime, reason: str | None) -> None:
        at_ns = self._wall_ns()
        try:
            until_us = int.__index__(event_times.event_time_us(until))
        except Exception as error:
            if self.strict:
                raise ProbeError(f"a message waits until a moment as event times are: {error}") from error
            self._drop(recorder.refuse_stamp(event_time, at_ns, BAD_UNTIL, self._max_age_us))
            return
        self._stamp_checked(_DEFERRED, message_id, event_time, at_ns, reason, until_us)

    def arrived_many(
        self,
        message_ids: MessageIds,
        event_times: EventTimes,
        *,
        schema: str = "",
        labels: Mapping[str, object] | None = None,
    ) -> None:
        """Stamp ``in`` for arrays, lists or columns of pandas and pyarrow, one item per message.

        Ids are texts, UUIDs, integers, 16-byte items or (n, 16) uint8; event times whole µs since 1970, datetime64 in
        UTC, or datetimes with a zone. ``schema`` names the schema that wrote the messages: a label of theirs, as all
        ``labels`` are; they are added to those of the probe.
        """
        self._stamp_many(_ARRIVED, message_ids, event_times, schema, labels)

    def departed_many(
        self,
        message_ids: MessageIds,
        event_times: EventTimes,
        *,
        schema: str = "",
        labels: Mapping[str, object] | None = None,
    ) -> None:
        """Stamp ``out`` for arrays; the same arrays as in :meth:`arrived_many` give one observation per message."""
        self._stamp_many(_DEPARTED, message_ids, event_times, schema, labels)

    def counted(  # noqa: PLR0913 - what is counted, and what else is known of it
        self,
        event_time: EventTime,
        count: int | None = None,
        *,
        message_ids: MessageIds | None = None,
        stamp: Literal["in", "out", "filtered", "rejected", "deferred"] = "in",
        size_bytes: int = 0,
        lags_ms: ArrayLike | None = None,
        lag_counts: ArrayLike | None = None,
    ) -> None:
        """Count messages instead of stamping them, at a node declared to count.

        Pass their number, or their ids, whose fingerprint then goes with it. All have event times in the minute of
        ``event_time``, and ``size_bytes`` in all, if it is known. Counts of a minute and stamp are added.

        ``lags_ms`` has the lag of each message, its stamp less its event time, in any order. A histogram is passed as
        the lags of its buckets, with ``lag_counts``, how many messages have each. The wire has a histogram of them.
        """
        self._count(CountArguments(event_time, count, message_ids, stamp, size_bytes, lags_ms, lag_counts))

    def flush(self, patience_s: float = 0.0) -> bool:
        """Send all stamps now, on this thread, and wait for the transport up to ``patience_s``.

        Return whether all stamps so far are where a monitor finds them; True without a sink.
        """
        try:
            return self._sender is None or self._sender.settle(patience_s)
        except Exception:  # noqa: BLE001 - a probe does not raise into its host
            _log.warning("a probe failed", exc_info=True)
            return False

    @_never_raising(is_stamp=True)
    def missed(self, cause: str, event_time: int | None = None) -> None:
        """Count a message that passed and could not be stamped, in the window of its event time (µs), or of now.

        The monitor treats it as a dropped stamp: messages missing in that window are unknown, and never lost.
        """
        at_ns = self._wall_ns()
        event_us = at_ns // 1_000 if event_time is None else event_time
        self._drop(recorder.refuse_stamp(event_us, at_ns, cause[:MAX_CAUSE_CHARS], self._max_age_us))

    @_never_raising()
    def caught_up(self, moment_us: int) -> None:
        """Report, for a probe with ``follows``, that all messages up to this moment (µs since 1970) are stamped."""
        if self._sender is not None:
            self._sender.catch_up(moment_us)

    @_never_raising()
    def close(self, *, bye: bool = True) -> None:
        """Send the remaining stamps and a bye; give up after two seconds. Later stamps are dropped.

        Use ``bye=False`` if the service goes on without its probe: its later messages are unknown, and never lost.
        """
        self.end(bye=bye)
        if self._ending is not None:
            self._ending.wait()

    @_never_raising()
    def end(self, *, bye: bool = True) -> None:
        """Begin to close without waiting, so that many probes close in parallel; :meth:`close` waits."""
        with self._waking:
            sender, was_dormant, self._is_dormant = self._sender, self._is_dormant, False
            lifecycle.unregister(self)
            # Read the clock before the queue closes: stamps between the two are not covered by the bye.
            until_us = self._wall_ns() // 1_000
            if sender is not None or was_dormant:
                # With no room in the queue each stamp goes through _stamp_checked, which counts it.
                self._ending, self._is_closed, self._max_stamps = sender, True, 0
            self._disable()
        if sender is not None:
            sender.end(CLOSE_S, bye=bye, until_us=until_us)

    @property
    def dropped(self) -> int:
        """Number of observations that this probe has dropped so far."""
        sender = self._sender or self._ending
        return self._dropped_unsent if sender is None else sender.dropped_total

    def __enter__(self) -> Self:
        """Return the probe."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the probe."""
        self.close()

    @_never_raising(is_stamp=True)
    def _stamp_checked(  # noqa: PLR0913, PLR0917 - a stamp, and what belongs to some kinds of them
        self,
        side: int,
        message_id: MessageId,
        event_time: EventTime,
        at_ns: int,
        reason: str | None = None,
        until_us: int = 0,
        labels: Mapping[str, object] | None = None,
    ) -> None:
        """Stamp with the checks that the fast path skips, and count a stamp that finds no room."""
        if self._is_closed:
            self._drop(recorder.refuse_stamp(event_time, at_ns, CLOSED, self._max_age_us))
            return
        if self.strict:
            check_arguments(message_id, event_time, at_ns // 1_000, self._max_age_us)
            check_labels(labels)
        own = clean_labels(labels)
        if not self._enqueue(Stamp(side, message_id, event_time, at_ns, clean_reason(reason), until_us, own)):
            self._drop(recorder.refuse_stamp(event_time, at_ns, QUEUE_FULL, self._max_age_us))

    def _enqueue(self, stamp: Stamp) -> bool:
        """Queue a stamp, if there is room for it."""
        if len(self._queue) >= self._max_stamps:
            return False
        # In the child of a fork stamps wait unweighed until the probe has started, which weighs them.
        if self._is_dormant or not weigh_call(stamp):
            self._append(stamp)
            return True
        return self._sender is None or self._sender.backlog.append_heavy(stamp)

    @_never_raising(is_stamp=True)
    def _stamp_many(
        self,
        side: int,
        message_ids: MessageIds,
        event_times: EventTimes,
        schema: str,
        labels: Mapping[str, object] | None,
    ) -> None:
        at_ns = self._wall_ns()
        if self.strict:
            check_labels(labels)
        try:
            taken = build_columns(message_ids, event_times)
        except Exception as error:
            if self.strict:
                raise ProbeError(str(error)) from error
            refusals = refuse_arrays(message_ids, event_times, at_ns, self._max_age_us)
            refusals.examples[BAD_ARRAYS] = f"{error!s:.200}"
            self._drop(refusals)
            return
        own = (*label_schema(schema), *(clean_labels(labels)))
        stamps = StampArrays(side, taken.ids, taken.events_us, at_ns, taken.id_kinds, taken.id_texts, own)
        if self.strict and (told := recorder.find_first_fault([stamps], self._max_age_us)) is not None:
            raise ProbeError(told)
        if self._is_dormant and len(taken.ids):
            self._wake()
        if self._is_closed and len(taken.ids):
            self._drop(recorder.refuse_array(taken.events_us, at_ns, CLOSED, self._max_age_us))
        elif self._sender is not None and len(taken.ids) and not self._sender.append_many(stamps, self._max_stamps):
            self._drop(recorder.refuse_array(taken.events_us, at_ns, QUEUE_FULL, self._max_age_us))

    @_never_raising(is_stamp=True)
    def _count(self, asked: CountArguments) -> None:
        self._wake()
        at_ns = self._wall_ns()
        try:
            counted = asked.check(at_ns // 1_000, self._max_age_us)
        except Exception as error:
            if self.strict:
                raise ProbeError(str(error)) from error
            cause = BAD_COUNT
        else:
            if not self._is_closed and (self._sender is None or self._sender.counts.add(counted)):
                return
            cause = CLOSED if self._is_closed else QUEUE_FULL
        self._drop(asked.refuse(at_ns, cause, self._max_age_us))

    def _drop(self, refusals: Refusals) -> None:
        if self._is_dormant:
            self._wake()
        if self._is_closed:
            self._warn_closed()
        elif self._sender is None:
            return
        sender = self._sender or self._ending
        if sender is not None:
            sender.drop(refusals)
            sender.wake()
        else:
            self._dropped_unsent += sum(
                count for (_, cause), count in refusals.items() if cause != recorder.POSSIBLE_WINDOW
            )

    def _warn_closed(self) -> None:
        """Log once that a closed probe was called; such stamps are never sent."""
        who = f"a probe of {self.stream} at {self.node}"
        told = f"{who} is closed, and drops what is stamped: close it after the last message"
        if self.strict:
            raise ProbeError(told)
        if not self._has_warned_closed:
            self._has_warned_closed = True
            _log.warning(told)


class _Passing:
    """Context manager for one message inside the node: ``in`` at the start of the block, ``out`` at its end."""

    __slots__ = ("_event_time", "_is_light", "_message_id", "_probe", "_since_ns", "_wall_ns")

    def __init__(self, probe: Probe, message_id: MessageId, event_time: EventTime) -> None:
        self._probe, self._message_id, self._event_time = probe, message_id, event_time
        kind = type(message_id)
        self._is_light = (kind is not str and kind is not bytes) or len(message_id) <= MAX_LIGHT_CHARS  # type: ignore[arg-type]  # what is sized

    def __enter__(self) -> None:
        probe = self._probe
        self._since_ns = probe._monotonic_ns()
        self._wall_ns = probe._wall_ns()
        if self._is_light and len(probe._queue) < probe._max_stamps and not probe.strict:
            probe._append(Stamp(_ARRIVED, self._message_id, self._event_time, self._wall_ns))
        else:
            probe._stamp_checked(_ARRIVED, self._message_id, self._event_time, self._wall_ns)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        probe = self._probe
        # The time inside is monotonic: a step of the wall clock must not show as a duration.
        at_ns = self._wall_ns + probe._monotonic_ns() - self._since_ns
        if self._is_light and len(probe._queue) < probe._max_stamps:
            probe._append(Stamp(_DEPARTED, self._message_id, self._event_time, at_ns))
        else:
            probe._stamp_checked(_DEPARTED, self._message_id, self._event_time, at_ns)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)
