"""Intake of posted observations and records: a sender for each node, and one sink for forwarded records."""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from collections.abc import Collection, Sequence
from http import HTTPStatus
from typing import Final

import numpy as np

from hopwatch.probes import id_columns
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Outcome as WireOutcome
from hopwatch.probes.contract.limits import MONITOR_STREAM, NOT_STAMPED
from hopwatch.probes.drop_ledger import UNDELIVERED
from hopwatch.probes.metrics.account import (
    HTTP_TAP_OUTCOMES,
    REQUEST_OUTCOMES,
    Account,
    ComponentAccounts,
    Output,
    RefusalReason,
)
from hopwatch.probes.metrics.catalog import HTTP_TAP
from hopwatch.probes.packing import NO_LABELS, NO_TEXT, Columns, PackedBatch, pack_batches
from hopwatch.probes.sinks import Sink, check_sink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.http.bodies import PostedObservation, PostedStamp
from hopwatch.probes.taps.http.body_parser import PostedBody, parse_body
from hopwatch.probes.taps.http.books import CLOSE_S, Books
from hopwatch.probes.taps.http.packets import parse_packet
from hopwatch.probes.taps.http.refusals import NodeName, RefusalProblem, RefusedObservations, estimate_max_count
from hopwatch.probes.taps.startup import open_checked_sink

UNAVAILABLE_S: Final = 2.0
"""Time for which a sink counts as unavailable after a refusal."""
RECORDS: Final = "http-records"
"""Name of the instance that forwards records of others; they keep the names of their own probes."""


class ObservationIntake:
    """Intake of observations and records; thread-safe."""

    def __init__(
        self, sink: str, around: RunContext, *, id_text: bool = True, allowed: Collection[NodeName] | None = None
    ) -> None:
        """Open the sink; only ``allowed`` nodes are accepted, None allows any.

        Raises:
            TapUsageError: the URL cannot be.
            TapSourceError: nothing can be written there.
        """
        self._url, self._context, self._id_text = sink, around, id_text
        self._name = f"{socket.gethostname()}-{os.getpid()}"
        self._records: Sink = open_checked_sink(sink, f"{RECORDS}.{self._name}.{around.wall_us()}", around.clock)
        self._refused_s = float("-inf")
        self._sending = threading.Lock()
        self.books = Books(sink, self._name, around, allowed)
        self.observations = self.records = 0
        self.account, self.requests = Account(HTTP_TAP_OUTCOMES), Account(REQUEST_OUTCOMES)

    def accounts(self) -> ComponentAccounts:
        """Return the accounts of its requests, and of the observations of all streams together."""
        return ComponentAccounts(HTTP_TAP, {"": self.account}, self.requests)

    def observe(self, data: bytes) -> PostedBody:
        """Send the valid observations of a body, and return the parsed body.

        Raises:
            RefusalProblem: none is valid, the sink refuses them, the node is not allowed, or there are too many.
        """
        posted = parse_body(data)
        good = len(posted.observations)
        with self.account.open_receipt(good + len(posted.bad_positions)) as receipt:
            receipt.refuse(len(posted.bad_positions), RefusalReason.REJECTED)
            try:
                sender = self.books.sender(posted.node)
            except RefusalProblem as refusal:
                refusal.refused = posted.all_refused
                receipt.refuse(good, _name_reason(refusal))
                raise
            if not sender.offer(lambda now_us: pack_observations(posted.observations, now_us, id_text=self._id_text)):
                receipt.refuse(good, RefusalReason.NOT_WRITTEN)
                raise self._build_full_error(
                    "send them again: what of them was taken before will count twice", posted.all_refused
                )
            receipt.emit(good, Output.STAMPS)
        self.observations += good
        return posted

    def count(self, data: bytes) -> int:
        """Forward a posted packet as the record of its server, and return the number of its counts.

        Raises:
            RefusalProblem: it is no packet, its node is not allowed, or the sink refuses it. Nothing is dropped: the
                number of the packet is missing until it comes again.
        """
        record = parse_packet(data, self._context.wall_us())
        try:
            self.forward_record(record)
        except RefusalProblem as refusal:
            refusal.refused = RefusedObservations()
            raise
        return len(envelope.read_record(record).metrics)

    def forward_record(self, record: bytes) -> int:
        """Forward a record of another probe unchanged, and return its number of observations.

        Raises:
            RefusalProblem: it is no record, its node is not allowed, or the sink refuses it.
        """
        refused = RefusedObservations(
            untimed=estimate_max_count(len(record)), is_record=record[:1] == bytes([envelope.MARKER])
        )
        count = 0
        try:
            view = envelope.read_record(record)
            refused, count = _count_record(view), view.count
            envelope.check_values(record, view)
        except envelope.RecordError as error:
            self._refuse_record(count, RefusalReason.REJECTED)
            raise RefusalProblem(
                HTTPStatus.UNPROCESSABLE_ENTITY, f"record-{error.reason}", str(error), refused=refused
            ) from None
        if view.stream == MONITOR_STREAM:
            self._refuse_record(count, RefusalReason.UNKNOWN_NODE)
            told = f"{MONITOR_STREAM} is the monitor's own stream"
            raise RefusalProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "record-bad_name", told)
        try:
            self.books.check_allowed(NodeName(view.stream, view.node))
        except RefusalProblem as refusal:
            refusal.refused = refused
            self._refuse_record(count, RefusalReason.UNKNOWN_NODE)
            raise
        with self.account.open_receipt(count) as receipt:
            with self._sending:
                is_taken = self._records.send(record)
            if not is_taken:
                receipt.refuse(count, RefusalReason.NOT_WRITTEN)
                raise self._build_full_error("send it again", refused)
            receipt.emit(count, Output.STAMPS)
        self.books.note_forwarded(NodeName(view.stream, view.node))
        self.records += 1
        return view.count

    def check(self) -> None:
        """Check that the sink can be written.

        Raises:
            TapSourceError: it cannot.
        """
        if self._context.monotonic_s() - self._refused_s < UNAVAILABLE_S:
            raise TapSourceError(f"the sink {self._url} took nothing just now: it is full, or cannot be written")
        try:
            check_sink(self._records)
        except OSError as error:
            raise TapSourceError(f"the sink {self._url} cannot be written: {error}") from None

    def tick(self) -> None:
        """Run the periodic work of the records' sink, and report refusals and failed records."""
        self.books.tick(self._context.monotonic_s())
        with self._sending:
            self.books.send_unstamped(self._records)
            self._records.tick()
            failed = self._records.failed()
        if failed:
            for record in failed:
                self.books.refuse(_count_record(envelope.read_record(record)), UNDELIVERED)
            told = f"{len(failed)} records that were passed on did not reach {self._url}"
            self._context.report(f"{told}: what was in them counts as dropped")

    def close(self, *, bye: bool) -> None:
        """Send what is left, and close all sinks."""
        self.books.close(bye=bye)
        with self._sending:
            self.books.send_unstamped(self._records)
            self._records.close(CLOSE_S)

    def _refuse_record(self, count: int, reason: RefusalReason) -> None:
        with self.account.open_receipt(count) as receipt:
            receipt.refuse(count, reason)

    def _build_full_error(self, advice: str, refused: RefusedObservations) -> RefusalProblem:
        self._refused_s = self._context.monotonic_s()
        told = f"the sink takes nothing now: {advice}"
        return RefusalProblem(HTTPStatus.SERVICE_UNAVAILABLE, "sink-full", told, refused=refused)


def _name_reason(refusal: RefusalProblem) -> RefusalReason:
    is_down = refusal.status is HTTPStatus.SERVICE_UNAVAILABLE
    return RefusalReason.NOT_WRITTEN if is_down else RefusalReason.UNKNOWN_NODE


def _count_record(view: envelope.RecordView) -> RefusedObservations:
    """Return the content of a record as refused; one of no messages counts as one untimed observation."""
    count = view.count + sum(one.count for one in view.metrics)
    windows = Counter({view.window_start_ms: count} if count else {})
    return RefusedObservations(NodeName(view.stream, view.node), windows, 0 if count else 1, is_record=True)


def pack_observations(
    observations: Sequence[PostedObservation], now_us: int, *, id_text: bool = True
) -> list[PackedBatch]:
    """Pack observations into batches; those without a moment are stamped now. ``id_text`` includes texts of ids."""
    rows = [(*_stamp_moments(one, now_us), WireOutcome[one.outcome.name], one) for one in observations]
    texts = list(dict.fromkeys(one.reason for one in observations if one.reason is not None))
    place = {text: at for at, text in enumerate(texts)}
    ids = id_columns.encode_ids([one.id for one in observations])
    names = [text or b"" for text in ids.texts] if id_text else []
    columns = Columns(
        ids.ids,
        np.array([one.event_time for one in observations], np.int64),
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.uint8),
        np.array([NO_TEXT if one.reason is None else place[one.reason] for one in observations], np.int64),
        ids.kinds,
        np.array([NO_TEXT if text is None else at for at, text in enumerate(ids.texts)], np.int64),
        np.array([one.until or 0 for one in observations], np.int64),
        np.full(len(observations), NO_LABELS),
    )
    return list(pack_batches(columns, texts, names))


def _stamp_moments(one: PostedObservation, now_us: int) -> tuple[int, int]:
    at_us = now_us if one.at is None else one.at
    out_us = at_us if one.out_at is None else one.out_at
    return (
        NOT_STAMPED if one.stamp is PostedStamp.OUT else at_us,
        NOT_STAMPED if one.stamp is PostedStamp.IN else out_us,
    )
