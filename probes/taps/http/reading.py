"""From the bytes of a body to the observations that can be taken, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticCustomError, from_json

from hopwatch.probes.contract.limits import MAX_COUNT, MONITOR_STREAM, NAME_PATTERN
from hopwatch.probes.http.problems import MOST_FAULTS, Fault, pointer
from hopwatch.probes.taps.http.bodies import Body, Observation, event_us
from hopwatch.probes.taps.http.refused import NodeName, Refusal, Refused, at_most, windows_of

ITEMS: Final = "observations"


@dataclass(frozen=True, slots=True)
class Posted:
    """What was posted: the observations that can be taken, and what was refused besides.

    ``bad`` are the places, among all that were posted, of those that were refused; ``faults`` say of the first few why.
    """

    node: NodeName
    observations: Sequence[Observation]
    refused: Refused = field(default_factory=Refused)
    bad: frozenset[int] = frozenset()
    faults: dict[int, list[Fault]] = field(default_factory=dict)

    @property
    def whole(self) -> Refused:
        """Return all that was posted as refused, for where nobody takes it."""
        windows = windows_of(one.event_time for one in self.observations) + self.refused.windows
        return Refused(self.node, windows, self.refused.untimed)


def read(data: bytes) -> Posted:
    """Return what was posted.

    Raises:
        Refusal: nothing of it can be taken; with the place of each error.
    """
    try:
        body = Body.model_validate_json(data)
    except ValidationError as error:
        return _part(data, error)
    node = NodeName(body.stream, body.node)
    if body.stream == MONITOR_STREAM:
        raise _refusal(Refused(), [Fault("/stream", f"{MONITOR_STREAM} is the monitor's own")])
    if any(one.fault() for one in body.observations):
        return _sorted(node, from_json(data)[ITEMS])
    return Posted(node, body.observations)


def _part(data: bytes, error: ValidationError) -> Posted:
    """Return the good part of a body that is not good throughout."""
    try:
        document = from_json(data)
    except ValueError as why:
        told = f"the body is no JSON: {why!s:.200}"
        raise Refusal(HTTPStatus.BAD_REQUEST, "not-json", told, refused=Refused(untimed=at_most(len(data)))) from None
    found = [one for one in error.errors(include_url=False, include_input=False) if one["loc"][:1] != (ITEMS,)]
    items = document.get(ITEMS) if isinstance(document, dict) else None
    node = _node(document)
    if not isinstance(items, list) or not 0 < len(items) <= MAX_COUNT or node is None or found:
        faults = [
            Fault(pointer(one["loc"]), str(one["msg"])[:200])
            for one in error.errors(include_url=False, include_input=False)[:MOST_FAULTS]
        ]
        raise _refusal(_whole(node, items, len(data)), faults)
    return _sorted(node, items)


def _node(document: object) -> NodeName | None:
    """Return the node that a document names, if that can be one."""
    if not isinstance(document, dict):
        return None
    stream, node = document.get("stream"), document.get("node")
    if not all(isinstance(name, str) and NAME_PATTERN.fullmatch(name) for name in (stream, node)):
        return None
    return NodeName(str(stream), str(node))


def _whole(node: NodeName | None, items: object, size_bytes: int) -> Refused:
    """Return all that is in a body: as many as are listed, or may be in so many bytes."""
    if isinstance(items, list):
        events_us = [event_us for event_us in map(_event_us_of, items) if event_us is not None]
        return Refused(node, windows_of(events_us), len(items) - len(events_us))
    return Refused(node, untimed=at_most(size_bytes))


def _sorted(node: NodeName, items: list[Any]) -> Posted:
    """Return the good ones of the items of a body, and what is wrong with the others."""
    good: list[Observation] = []
    events_us: list[int] = []
    bad: set[int] = set()
    told: dict[int, list[Fault]] = {}
    for at, item in enumerate(items):
        try:
            one = Observation.model_validate(item)
        except ValidationError as error:
            faults = _faults(at, error) if len(told) < MOST_FAULTS else []
        else:
            fault = one.fault()
            if fault is None:
                good.append(one)
                continue
            faults = [Fault(f"/{ITEMS}/{at}", fault)]
        bad.add(at)
        if len(told) < MOST_FAULTS:
            told[at] = faults
        moment_us = _event_us_of(item)
        events_us += [] if moment_us is None else [moment_us]
    refused = Refused(node, windows_of(events_us), len(bad) - len(events_us))
    if not good:
        raise _refusal(refused, [fault for faults in told.values() for fault in faults][:MOST_FAULTS])
    return Posted(node, good, refused, frozenset(bad), told)


def _faults(at: int, error: ValidationError) -> list[Fault]:
    found = error.errors(include_url=False, include_input=False)[:MOST_FAULTS]
    return [Fault(pointer((ITEMS, at, *one["loc"])), str(one["msg"])[:200]) for one in found]


def _event_us_of(item: object) -> int | None:
    """Return the event time of an item, if it can be read."""
    try:
        return event_us(item.get("event_time")) if isinstance(item, dict) else None
    except PydanticCustomError:
        return None


def _refusal(refused: Refused, faults: list[Fault]) -> Refusal:
    told = "the body holds what no observation can: see errors"
    return Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-observations", told, faults, refused=refused)
