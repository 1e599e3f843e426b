"""Intake of OTLP requests: stamps of the messages that spans tell of, and books of the services that they come from."""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from hopwatch.probes import id_columns
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.limits import NAME_PATTERN, WINDOW_MS
from hopwatch.probes.drop_ledger import SINK_REFUSED
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.metrics.account import (
    HTTP_TAP_OUTCOMES,
    REQUEST_OUTCOMES,
    Account,
    ComponentAccounts,
    Output,
    RefusalReason,
)
from hopwatch.probes.metrics.catalog import OTLP_TAP
from hopwatch.probes.packing import NO_LABELS, NO_TEXT, Columns, Labels, PackedBatch, pack_batches
from hopwatch.probes.recorder import MAX_LABEL_SETS, Refusals
from hopwatch.probes.sender import Sender
from hopwatch.probes.sinks import check_sink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.http.books import CLOSE_S, Books
from hopwatch.probes.taps.http.refusals import NodeName, RefusalProblem, count_by_window
from hopwatch.probes.taps.otlp.event_windows import EventWindows
from hopwatch.probes.taps.otlp.message_matcher import SETTLE_S, MessageMatcher, SpanStamp, UnmatchedMessages
from hopwatch.probes.taps.otlp.message_spans import read_message_spans, read_text
from hopwatch.probes.taps.otlp.request_decoder import OtlpError, decode_metrics, decode_spans
from hopwatch.probes.taps.otlp.sdk_metrics import read_sdk_metrics
from hopwatch.probes.taps.otlp.service_books import ServiceBooks, ServiceProgress
from hopwatch.probes.taps.startup import open_checked_sink

MAX_SEEN: Final = 500_000
"""Spans that are remembered, at most twice as many in some 110 MB, so that one that is sent again counts once."""
MAX_NS: Final = 2**63
MISSING: Final = "otlp: spans are missing"
UNMATCHED: Final = "otlp: no span of the producer"
UNNAMED: Final = "otlp: no creation context"
UNTIMED: Final = "otlp: no times"
BAD_NAME: Final = "bad name"
CHECKS: Final = "otlp-checks"
"""Name of the instance that checks whether the sink can be written; it sends nothing."""


class TakenSpans(NamedTuple):
    """Result of a request: its new spans, and how many of them were not used, with the reasons."""

    spans: int
    rejected: Counter[str]


class KnownServices(NamedTuple):
    """Nodes that are stamped, None for all; processes of services at once, at most; transits of streams in µs."""

    nodes: Collection[NodeName] | None = None
    instances: Mapping[str, int] = MappingProxyType({})
    transits_us: Mapping[str, int] = MappingProxyType({})


class _NewSpans(NamedTuple):
    """Spans of one SDK that came for the first time, of a service with a name."""

    service: str
    instance: str | None
    spans: list[Span]


class SpanIntake:
    """Intake of the spans and metrics of SDKs; thread-safe.

    A service is told only if it is known how many SDKs run of it at once, and these tell what they know of their own
    spans (:mod:`hopwatch.probes.taps.otlp.service_books`); messages that others miss are unknown, and never lost.
    """

    def __init__(
        self, sink: str, around: RunContext, known: KnownServices | None = None, *, id_text: bool = True
    ) -> None:
        """Start with what is known of services; ``id_text`` sends texts of ids beside their hashes.

        Raises:
            TapUsageError: the URL of the sink cannot be.
            TapSourceError: nothing can be written there.
        """
        self._context, self._known, self._id_text = around, known or KnownServices(), id_text
        self._windows: dict[str, EventWindows] = {}
        name = f"{socket.gethostname()}-{os.getpid()}"
        self._url, self._books = sink, Books(sink, name, around, self._known.nodes, follows=True)
        self._checked = open_checked_sink(sink, f"{CHECKS}.{name}.{around.wall_us()}", around.clock)
        self._matcher = MessageMatcher()
        self._services = {name: ServiceBooks(most) for name, most in self._known.instances.items()}
        self._nodes: defaultdict[str, dict[NodeName, None]] = defaultdict(dict)
        self._seen: tuple[set[bytes], set[bytes]] = set(), set()
        # Stamps that the sink has not taken yet; and what became known of services, until it is told.
        self._waiting: defaultdict[NodeName, list[SpanStamp]] = defaultdict(list)
        self._due: deque[tuple[float, str, ServiceProgress]] = deque()
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self.stamps = self.spans = 0
        self.rejected: Counter[str] = Counter()
        self.account, self.requests = Account(HTTP_TAP_OUTCOMES), Account(REQUEST_OUTCOMES)

    def accounts(self) -> ComponentAccounts:
        """Return the accounts of its requests, and of the stamps of all streams together."""
        return ComponentAccounts(OTLP_TAP, {"": self.account}, self.requests)

    def take_spans(self, body: bytes, media_type: str) -> TakenSpans:
        """Stamp the messages of a request of spans.

        Raises:
            HttpProblem: it is none, or the sink refuses the stamps: then it has to be sent again.
        """
        try:
            request = decode_spans(body, media_type)
        except OtlpError as error:
            raise HttpProblem(HTTPStatus.BAD_REQUEST, "bad-request", str(error)) from None
        with self._lock:
            self._send_waiting()
            now_s = self._context.monotonic_s()
            rejected: Counter[str] = Counter()
            new = list(self._find_new(request.resource_spans, rejected))
            for stamp in self._find_stamps(new, now_s, rejected):
                self._waiting[NodeName(stamp.stream, stamp.node)].append(stamp)
            for one in new:
                self._seen[0].update(span.trace_id + span.span_id for span in one.spans)
                if one.service in self._services:
                    self._services[one.service].add_spans(one.instance, _read_times(one.spans), now_s)
            if len(self._seen[0]) > MAX_SEEN:
                self._seen = set(), self._seen[0]
            taken = TakenSpans(sum(len(one.spans) for one in new), rejected)
            self.spans += taken.spans
            self.rejected += rejected
            with suppress(HttpProblem):
                # What the sink does not take waits here, and further requests are refused meanwhile.
                self._send_waiting()
        return taken

    def take_metrics(self, body: bytes, media_type: str) -> None:
        """Take what SDKs tell of their own spans; all other metrics are passed over.

        Raises:
            HttpProblem: it is no request of metrics.
        """
        try:
            request = decode_metrics(body, media_type)
        except OtlpError as error:
            raise HttpProblem(HTTPStatus.BAD_REQUEST, "bad-request", str(error)) from None
        with self._lock:
            for resource in request.resource_metrics:
                attributes = resource.resource.attributes
                service, reading = read_text(attributes, "service.name"), read_sdk_metrics(resource)
                if service is not None and service in self._services and reading is not None:
                    instance = read_text(attributes, "service.instance.id")
                    now_ns, now_s = self._context.clock.wall_ns(), self._context.monotonic_s()
                    self._services[service].add_reading(instance, reading, now_ns, now_s)

    def check(self) -> None:
        """Check that the sink can be written.

        Raises:
            TapSourceError: it cannot.
        """
        try:
            check_sink(self._checked)
        except OSError as error:
            raise TapSourceError(f"the sink {self._url} cannot be written: {error}") from None

    def tick(self) -> None:
        """Tell what became known of services, and count messages whose producer's span did not come."""
        with self._lock:
            try:
                self._send_waiting()
            except HttpProblem:
                return
            now_s = self._context.monotonic_s()
            for one in self._matcher.take_unmatched(now_s):
                self._miss_unmatched(one, UNMATCHED)
            for name, service in self._services.items():
                self._due.append((now_s + SETTLE_S, name, service.advance(now_s)))
            # By then whatever was taken in before is matched, or counts as missing.
            while self._due and self._due[0][0] <= now_s:
                _, name, progress = self._due.popleft()
                self._tell(name, progress)

    def close(self) -> None:
        """Send what is left, and close all sinks; without a bye, for the services go on."""
        with self._lock:
            with suppress(HttpProblem):
                self._send_waiting()
            for name, stamps in self._waiting.items():
                sender = self._books.find(name)
                if sender is not None:
                    windows = count_by_window(stamp.event_us for stamp in stamps)
                    sender.drop(Refusals({(start_ms, SINK_REFUSED): count for start_ms, count in windows.items()}))
        self._books.close(bye=False)
        self._checked.close(CLOSE_S)

    def _tell(self, service: str, progress: ServiceProgress) -> None:
        for period in progress.periods:
            if period.missing:
                missed = UnmatchedMessages(service, period.missing, period.until_ns // 1_000)
                self._miss(missed, MISSING, (period.since_ns // 1_000, period.until_ns // 1_000))
        for sender in self._find_senders(service):
            if progress.has_gap:
                sender.leave_hole()
            if progress.until_ns is not None:
                sender.catch_up(progress.until_ns // 1_000)
        if progress.until_ns is not None and service not in self._told:
            self._told.add(service)
            self._context.report(f"{service} is told from now on: each of its SDKs says how many spans have ended")

    def _find_new(self, resources: Iterable[ResourceSpans], rejected: Counter[str]) -> Iterable[_NewSpans]:
        """Yield the spans that came for the first time; those of services whose name is none of a node are rejected."""
        here: set[bytes] = set()
        for resource in resources:
            attributes = resource.resource.attributes
            service = read_text(attributes, "service.name")
            spans = [span for scope in resource.scope_spans for span in scope.spans]
            if service is None or not NAME_PATTERN.fullmatch(service):
                rejected[BAD_NAME] += len(spans)
                continue
            found: list[Span] = []
            for span in spans:
                key = span.trace_id + span.span_id
                if key not in self._seen[0] and key not in self._seen[1] and key not in here:
                    here.add(key)
                    found.append(span)
            yield _NewSpans(service, read_text(attributes, "service.instance.id"), found)

    def _find_stamps(self, new: Sequence[_NewSpans], now_s: float, rejected: Counter[str]) -> list[SpanStamp]:
        stamps: list[SpanStamp] = []
        for one in new:
            told = read_message_spans(one.spans)
            self._matcher.add_consumer_spans(
                span.trace_id + span.span_id for span in one.spans if span.kind == Span.SPAN_KIND_CONSUMER
            )
            for sent in told.sent:
                stamps.extend(self._matcher.add_sent(one.service, sent))
            for taken in told.taken:
                stamps.extend(self._matcher.add_taken(one.service, taken, now_s))
                if taken.unnamed:
                    missed = UnmatchedMessages(one.service, taken.unnamed, taken.arrived_us)
                    self._miss_unmatched(missed, UNNAMED)
            if told.untimed:
                rejected[UNTIMED] += told.untimed
                missed = UnmatchedMessages(one.service, told.untimed, self._context.wall_us())
                self._miss_unmatched(missed, UNTIMED)
        return stamps

    def _send_waiting(self) -> None:
        """Send the stamps that wait.

        Raises:
            HttpProblem: the sink takes nothing now; they wait on.
        """
        for name in list(self._waiting):
            own = self._waiting[name]
            try:
                sender = self._books.sender(name)
            except RefusalProblem as refusal:
                if refusal.status is HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
                # Of a node that is not stamped here, however often the span comes.
                self._settle(own, RefusalReason.UNKNOWN_NODE)
            else:
                if not sender.offer(lambda _, own=own: pack_stamps(own, id_text=self._id_text)):  # type: ignore[misc]
                    told = "the sink takes nothing now: send the spans again"
                    raise HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "sink-full", told)
                self._settle(own, None)
                self._nodes[name.node][name] = None
                self.stamps += len(own)
                windows, events_us = self._find_windows(name.stream), [stamp.event_us for stamp in own]
                for event_us in (min(events_us), max(events_us)):
                    windows.note(event_us, self._context.wall_us())
            del self._waiting[name]

    def _settle(self, stamps: Sequence[SpanStamp], reason: RefusalReason | None) -> None:
        with self.account.open_receipt(len(stamps)) as receipt:
            if reason is None:
                receipt.emit(len(stamps), Output.STAMPS)
            else:
                receipt.refuse(len(stamps), reason)
                self.rejected[reason] += len(stamps)

    def _find_senders(self, service: str) -> list[Sender]:
        return [sender for name in self._nodes.get(service, ()) if (sender := self._books.find(name)) is not None]

    def _find_windows(self, stream: str) -> EventWindows:
        if stream not in self._windows:
            self._windows[stream] = EventWindows(self._known.transits_us.get(stream))
        return self._windows[stream]

    def _miss_unmatched(self, one: UnmatchedMessages, cause: str) -> None:
        now_us = self._context.wall_us()
        self._miss(one, cause, (min(one.at_us, now_us), max(one.at_us, now_us)))

    def _miss(self, missed: UnmatchedMessages, cause: str, between_us: tuple[int, int]) -> None:
        """Count messages that were not stamped, in each stream of the service and each window that they may be of."""
        for name in list(self._nodes.get(missed.service, ())):
            sender = self._books.find(name)
            if sender is None:
                continue
            minutes = self._find_windows(name.stream).find(*between_us)
            if minutes is None:
                sender.leave_hole()
            else:
                sender.drop(Refusals({(minute * WINDOW_MS, cause): missed.number for minute in minutes}))


def _read_times(spans: Iterable[Span]) -> NDArray[np.int64]:
    """Return starts and ends in ns; a span with times beyond 64 bits is left out, and so counts as missing."""
    times = [(one.start_time_unix_nano, one.end_time_unix_nano) for one in spans]
    return np.array([pair for pair in times if max(pair) < MAX_NS], np.int64).reshape(-1, 2)


def pack_stamps(stamps: Sequence[SpanStamp], *, id_text: bool = True) -> list[PackedBatch]:
    """Pack the stamps of one node into batches; further sets of labels than can be told apart are left out.

    ``id_text`` includes the texts of ids.
    """
    ids = id_columns.encode_ids([one.message_id for one in stamps])
    sets: dict[Labels, int] = {}
    for one in stamps:
        if one.labels and one.labels not in sets and len(sets) < MAX_LABEL_SETS:
            sets[one.labels] = len(sets) + 1
    columns = Columns(
        ids.ids,
        np.array([one.event_us for one in stamps], np.int64),
        np.array([one.in_us for one in stamps], np.int64),
        np.array([one.out_us for one in stamps], np.int64),
        np.full(len(stamps), Outcome.PASSED, np.uint8),
        np.full(len(stamps), NO_TEXT, np.int64),
        ids.kinds,
        np.arange(len(stamps)),
        np.zeros(len(stamps), np.int64),
        np.array([sets.get(one.labels, NO_LABELS) for one in stamps], np.int64),
    )
    names = [text or b"" for text in ids.texts] if id_text else []
    return list(pack_batches(columns, [], names, list(sets)))
