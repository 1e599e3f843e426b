"""JSON body of a post: observations of one node of one stream."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, FailFast, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from hopwatch.probes.contract.limits import MAX_COUNT, MAX_REASON_CHARS
from hopwatch.probes.values import MAX_ID_CHARS, IdFormat, TimeUnit, build_id_reader, build_time_reader

_READ_ID: Final = build_id_reader(IdFormat.AUTO)
_READ_US: Final = build_time_reader(TimeUnit.US)
_READ_ISO: Final = build_time_reader(TimeUnit.ISO)
MIN_PLAUSIBLE_US: Final = 100_000_000_000_000
"""Lower bound of event times, in March 1973: a smaller number is probably a present time in another unit."""
_NAME: Final = r"^[A-Za-z0-9._-]{1,128}$"


class PostedStamp(StrEnum):
    """Stamps of an observation."""

    IN = "in"
    OUT = "out"
    BOTH = "both"


class PostedOutcome(StrEnum):
    """Outcome of the message at the node."""

    PASSED = "passed"
    FILTERED = "filtered"
    REJECTED = "rejected"
    DEFERRED = "deferred"


def _parse_id(value: object) -> bytes:
    try:
        return _READ_ID(value)
    except ValueError as error:
        raise PydanticCustomError("id", "{told}", {"told": str(error)}) from None


def parse_moment_us(value: object) -> int:
    """Parse a posted moment into µs since 1970; raise PydanticCustomError for an invalid one."""
    try:
        if type(value) is int:
            return _READ_US(value)
        if isinstance(value, str):
            return _READ_ISO(value)
        raise ValueError(f"a time is whole µs since 1970 or ISO 8601 text, got {value!r:.60}")  # noqa: TRY301 - one sentence for all
    except ValueError as error:
        raise PydanticCustomError("time", "{told}", {"told": str(error)}) from None


def parse_event_us(value: object) -> int:
    """Parse a posted event time, as :func:`parse_moment_us` does; refuse a number in another unit."""
    found = parse_moment_us(value)
    if type(value) is int and found < MIN_PLAUSIBLE_US:
        told = f"an event time is whole µs since 1970, got {value}: is it in seconds or milliseconds?"
        raise PydanticCustomError("time", "{told}", {"told": told})
    return found


MessageId = Annotated[
    bytes,
    PlainValidator(_parse_id),
    WithJsonSchema(
        {
            "description": "a UUID in its usual form, any other text, or a whole number below 2^128",
            "anyOf": [
                {"type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS},
                {"type": "integer", "minimum": 0},
            ],
        }
    ),
]
Moment = Annotated[
    int,
    PlainValidator(parse_moment_us),
    WithJsonSchema(
        {
            "description": "whole µs since 1970, or ISO 8601 with a zone",
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 2**53 - 1},
                {"type": "string", "format": "date-time"},
            ],
        }
    ),
]
EventTime = Annotated[
    int,
    PlainValidator(parse_event_us),
    WithJsonSchema(
        {
            "description": "whole µs since 1970, or ISO 8601 with a zone",
            "anyOf": [
                {"type": "integer", "minimum": MIN_PLAUSIBLE_US, "maximum": 2**53 - 1},
                {"type": "string", "format": "date-time"},
            ],
        }
    ),
]


class PostedObservation(BaseModel):
    """One message at this node."""

    model_config = ConfigDict(extra="forbid")

    id: MessageId
    event_time: EventTime
    stamp: PostedStamp
    outcome: PostedOutcome = PostedOutcome.PASSED
    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON_CHARS)] | None = None
    until: Annotated[Moment | None, Field(description="until when a deferred message waits at the longest")] = None
    at: Annotated[Moment | None, Field(description="when it was stamped; now, if it is not said")] = None
    out_at: Annotated[Moment | None, Field(description="when it left, with both stamps; at, if it is not said")] = None

    def find_fault(self) -> str | None:
        """Describe a contradiction between the fields; None if there is none."""
        if self.outcome is not PostedOutcome.PASSED and self.stamp is not PostedStamp.IN:
            stays = "waits" if self.outcome is PostedOutcome.DEFERRED else "ends"
            return f"a message that is {self.outcome} {stays} here and has the stamp in alone, got {self.stamp}"
        if self.outcome is PostedOutcome.PASSED and self.reason is not None:
            return "a message that passed has no reason: it goes with filtered, rejected and deferred"
        if self.outcome is PostedOutcome.DEFERRED and self.until is None:
            return "a message that is deferred waits until a moment: say until, its next try included"
        if self.outcome is not PostedOutcome.DEFERRED and self.until is not None:
            return f"until goes with deferred alone, got a message that is {self.outcome}"
        if self.out_at is not None and self.stamp is not PostedStamp.BOTH:
            return "out_at goes with both stamps: a message that only left has its moment in at"
        return None


class ObservationsBody(BaseModel):
    """Observations of one node of one stream."""

    model_config = ConfigDict(extra="forbid")

    stream: Annotated[str, Field(pattern=_NAME)]
    node: Annotated[str, Field(pattern=_NAME)]
    observations: Annotated[list[PostedObservation], Field(min_length=1, max_length=MAX_COUNT), FailFast()]
