"""What a client posts: observations of one node of one stream, in JSON; checked here, and nowhere else."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, FailFast, Field, PlainValidator, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError

from probes.contract.limits import MAX_COUNT, MAX_REASON_CHARS, MONITOR_STREAM
from probes.http.problems import MOST_FAULTS, Fault, Problem, pointer
from probes.values import MAX_ID_CHARS, IdKind, TimeUnit, id_reader, time_reader

_READ_ID: Final = id_reader(IdKind.AUTO)
_READ_US: Final = time_reader(TimeUnit.US)
_READ_ISO: Final = time_reader(TimeUnit.ISO)
_NAME: Final = r"^[A-Za-z0-9._-]{1,128}$"


class Stamped(StrEnum):
    """Which stamps an observation carries."""

    IN = "in"
    OUT = "out"
    BOTH = "both"


class Outcome(StrEnum):
    """What the node did with the message."""

    PASSED = "passed"
    FILTERED = "filtered"
    REJECTED = "rejected"


def _id(value: object) -> bytes:
    try:
        return _READ_ID(value)
    except ValueError as error:
        raise PydanticCustomError("id", "{told}", {"told": str(error)}) from None


def _moment(value: object) -> int:
    try:
        if type(value) is int:
            return _READ_US(value)
        if isinstance(value, str):
            return _READ_ISO(value)
        raise ValueError(f"a time is whole µs since 1970 or ISO 8601 text, got {value!r:.60}")  # noqa: TRY301 - one sentence for all
    except ValueError as error:
        raise PydanticCustomError("time", "{told}", {"told": str(error)}) from None


MessageId = Annotated[
    bytes,
    PlainValidator(_id),
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
    PlainValidator(_moment),
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


class Observation(BaseModel):
    """One message at this node."""

    model_config = ConfigDict(extra="forbid")

    id: MessageId
    event_time: Moment
    stamp: Stamped
    outcome: Outcome = Outcome.PASSED
    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON_CHARS)] | None = None
    at: Annotated[Moment | None, Field(description="when it was stamped; now, if it is not said")] = None
    out_at: Annotated[Moment | None, Field(description="when it left, with both stamps; at, if it is not said")] = None

    def fault(self) -> str | None:
        """Return what does not go together, if anything."""
        if self.outcome is not Outcome.PASSED and self.stamp is not Stamped.IN:
            return f"a message that is {self.outcome} ends here and has the stamp in alone, got {self.stamp}"
        if self.outcome is Outcome.PASSED and self.reason is not None:
            return "a message that passed has no reason: it goes with filtered and rejected"
        if self.out_at is not None and self.stamp is not Stamped.BOTH:
            return "out_at goes with both stamps: a message that only left has its moment in at"
        return None


class Body(BaseModel):
    """Observations of one node of one stream."""

    model_config = ConfigDict(extra="forbid")

    stream: Annotated[str, Field(pattern=_NAME)]
    node: Annotated[str, Field(pattern=_NAME)]
    observations: Annotated[list[Observation], Field(min_length=1, max_length=MAX_COUNT), FailFast()]

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the body that bytes are.

        Raises:
            Problem: they are not one, with the place of each error.
        """
        try:
            body = cls.model_validate_json(data)
        except ValidationError as error:
            raise _problem(error) from None
        if body.stream == MONITOR_STREAM:
            raise _refused([Fault("/stream", f"{MONITOR_STREAM} is the monitor's own")])
        faults = [
            Fault(f"/observations/{at}", told) for at, one in enumerate(body.observations) if (told := one.fault())
        ]
        if faults:
            raise _refused(faults[:MOST_FAULTS])
        return body


def _problem(error: ValidationError) -> Problem:
    faults: list[dict[str, Any]] = [dict(one) for one in error.errors(include_url=False, include_input=False)]
    if any(one["type"] == "json_invalid" for one in faults):
        return Problem(HTTPStatus.BAD_REQUEST, "not-json", f"the body is no JSON: {faults[0]['msg']:.200}")
    return _refused([Fault(pointer(one["loc"]), str(one["msg"])[:200]) for one in faults[:MOST_FAULTS]])


def _refused(faults: list[Fault]) -> Problem:
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "bad-observations",
        "the body holds what no observation can: see errors",
        faults,
    )
