"""JSON body of a packet: what one server counted in one minute, by its number; it becomes a record of that server."""

from __future__ import annotations

from functools import cached_property
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hopwatch.probes import id_columns
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Batch, BatchKind, Metrics, MetricsStamp
from hopwatch.probes.contract.fingerprints import Fingerprint, take_fingerprint
from hopwatch.probes.contract.lag_histograms import PackedLags
from hopwatch.probes.contract.limits import MAX_COUNT, MAX_METRICS, MAX_NAME_CHARS, WINDOW_MS, WINDOW_US
from hopwatch.probes.http.problems import MAX_FAULTS, Fault, json_pointer
from hopwatch.probes.lag_arguments import pack_lags
from hopwatch.probes.taps.http.bodies import EventTime, MessageId, Moment
from hopwatch.probes.taps.http.refusals import RefusalProblem

_NAME: Final = r"^[A-Za-z0-9._-]{1,128}$"
_MAX: Final = 2**63 - 1
_Half = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
_Number = Annotated[int, Field(ge=0, le=_MAX, strict=True)]


class PostedFingerprint(BaseModel):
    """Fingerprint of the ids of messages: two times 64 bits, in 16 hexadecimal digits each."""

    model_config = ConfigDict(extra="forbid")

    xor: _Half
    sum: _Half


class PostedCount(BaseModel):
    """Messages that were counted at one stamp: their number or their ids, and what else is known of them."""

    model_config = ConfigDict(extra="forbid")

    stamp: Literal["in", "out", "filtered", "rejected", "deferred"] = "in"
    count: _Number | None = None
    ids: list[MessageId] | None = None
    fingerprint: PostedFingerprint | None = None
    bytes: _Number = 0
    lags_ms: Annotated[
        list[float] | None,
        Field(max_length=MAX_COUNT, description="the lag of each message, or of each bucket of a histogram, in ms"),
    ] = None
    lag_counts: Annotated[
        list[_Number] | None, Field(max_length=MAX_COUNT, description="how many messages have each lag; one without it")
    ] = None

    @model_validator(mode="after")
    def _check_one(self) -> PostedCount:
        if (self.count is None) is (self.ids is None):
            raise ValueError("a count is a number, or the ids of the messages: one of both")
        if self.ids is not None and self.fingerprint is not None:
            raise ValueError("a fingerprint goes with a number: that of ids is taken here")
        if self.lag_counts is not None and self.lags_ms is None:
            raise ValueError("lag_counts are of lags_ms, got none of these")
        # Lags that cannot be are told here.
        _ = self.packed_lags
        return self

    @property
    def _number(self) -> int:
        return len(self.ids) if self.ids is not None else self.count or 0

    @cached_property
    def packed_lags(self) -> PackedLags:
        """The lags as the wire has them."""
        return b"" if self.lags_ms is None else pack_lags(self.lags_ms, self.lag_counts, self._number)

    def to_metrics(self) -> Metrics:
        """Return what the wire says of it."""
        stamp = MetricsStamp[self.stamp.upper()]
        if self.ids is not None:
            printed = take_fingerprint(id_columns.encode_ids(self.ids).ids.astype(np.uint64))
        else:
            own = self.fingerprint
            printed = Fingerprint() if own is None else Fingerprint(int(own.xor, 16), int(own.sum, 16))
        return Metrics(stamp, self._number, *printed.signed, self.bytes, self.packed_lags)


class PacketBody(BaseModel):
    """Packet of one server: what it counted of the messages of one minute of event time."""

    model_config = ConfigDict(extra="forbid")

    stream: Annotated[str, Field(pattern=_NAME)]
    node: Annotated[str, Field(pattern=_NAME)]
    server: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
    started: Annotated[EventTime, Field(description="when this run of the server began: its numbers count from there")]
    number: Annotated[_Number, Field(description="of the packet in this run of the server, from 0: a gap is a hole")]
    window_start: Annotated[EventTime, Field(description="the minute of event time that is counted")]
    counts: Annotated[list[PostedCount], Field(max_length=MAX_METRICS)]
    complete_through: Annotated[
        Moment | None,
        Field(description="all that it counted up to then is in this packet or an earlier one; the minute's end"),
    ] = None

    def to_batch(self, now_us: int) -> Batch:
        """Return the batch of the server."""
        start_us = self.window_start // WINDOW_US * WINDOW_US
        through_us = start_us + WINDOW_US if self.complete_through is None else self.complete_through
        return Batch(
            self.server, self.started, self.number, BatchKind.METRICS, self.stream, self.node,
            start_us // WINDOW_US * WINDOW_MS, now_us, min(through_us, now_us),
            metrics=tuple(one.to_metrics() for one in self.counts),
        )  # fmt: skip


def parse_packet(data: bytes, now_us: int) -> bytes:
    """Return the record of a posted packet.

    Raises:
        RefusalProblem: it is none. Nothing is dropped: its number is missing until it comes as it should.
    """
    try:
        return envelope.encode(PacketBody.model_validate_json(data).to_batch(now_us))
    except ValidationError as error:
        found: list[Any] = error.errors(include_url=False, include_input=False)[:MAX_FAULTS]
        faults = [Fault(json_pointer(one["loc"]), str(one["msg"])[:200]) for one in found]
        told = "the body is no packet: see errors"
        raise RefusalProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-packet", told, faults) from None
