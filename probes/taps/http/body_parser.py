"""Parser of posted bodies: the valid observations, and the faults of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticCustomError, from_json

from hopwatch.probes.contract.limits import MAX_COUNT, MONITOR_STREAM, NAME_PATTERN
from hopwatch.probes.http.problems import MAX_FAULTS, Fault, json_pointer
from hopwatch.probes.taps.http.bodies import ObservationsBody, PostedObservation, parse_event_us
from hopwatch.probes.taps.http.refusals import (
    NodeName,
    RefusalProblem,
    RefusedObservations,
    count_by_window,
    estimate_max_count,
)

ITEMS: Final = "observations"


@dataclass(frozen=True, slots=True)
class PostedBody:
    """Parsed body: its valid observations, and the refused ones.

    ``bad_positions`` are the indices of refused observations among all posted ones; ``faults`` explain the first few.
    """

    node: NodeName
    observations: Sequence[PostedObservation]
    refused: RefusedObservations = field(default_factory=RefusedObservations)
    bad_positions: frozenset[int] = frozenset()
    faults: dict[int, list[Fault]] = field(default_factory=dict)

    @property
    def all_refused(self) -> RefusedObservations:
        """Return all posted observations as refused, for a body that is not accepted after all."""
        windows = count_by_window(one.event_time for one in self.observations) + self.refused.windows
        return RefusedObservations(self.node, windows, self.refused.untimed)


def parse_body(data: bytes) -> PostedBody:
    """Parse a posted body.

    Raises:
        RefusalProblem: no observation is valid; with the place of each error.
    """
    try:
        body = ObservationsBody.model_validate_json(data)
    except ValidationError as error:
        return _parse_partial(data, error)
    node = NodeName(body.stream, body.node)
    if body.stream == MONITOR_STREAM:
        raise _bad_body_problem(RefusedObservations(), [Fault("/stream", f"{MONITOR_STREAM} is the monitor's own")])
    if any(one.find_fault() for one in body.observations):
        return _split_items(node, from_json(data)[ITEMS])
    return PostedBody(node, body.observations)


def _parse_partial(data: bytes, error: ValidationError) -> PostedBody:
    """Parse the valid part of a body with faults."""
    try:
        document = from_json(data)
    except ValueError as why:
        told = f"the body is no JSON: {why!s:.200}"
        raise RefusalProblem(
            HTTPStatus.BAD_REQUEST, "not-json", told, refused=RefusedObservations(untimed=estimate_max_count(len(data)))
        ) from None
    found = [one for one in error.errors(include_url=False, include_input=False) if one["loc"][:1] != (ITEMS,)]
    items = document.get(ITEMS) if isinstance(document, dict) else None
    node = _parse_node(document)
    if not isinstance(items, list) or not 0 < len(items) <= MAX_COUNT or node is None or found:
        faults = [
            Fault(json_pointer(one["loc"]), str(one["msg"])[:200])
            for one in error.errors(include_url=False, include_input=False)[:MAX_FAULTS]
        ]
        raise _bad_body_problem(_refuse_all(node, items, len(data)), faults)
    return _split_items(node, items)


def _parse_node(document: object) -> NodeName | None:
    """Return the node that a document names, if its names are valid."""
    if not isinstance(document, dict):
        return None
    stream, node = document.get("stream"), document.get("node")
    if not all(isinstance(name, str) and NAME_PATTERN.fullmatch(name) for name in (stream, node)):
        return None
    return NodeName(str(stream), str(node))


def _refuse_all(node: NodeName | None, items: object, size_bytes: int) -> RefusedObservations:
    """Return all observations of a body as refused: those listed, or as many as its bytes may hold."""
    if isinstance(items, list):
        events_us = [event_us for event_us in map(_parse_item_time, items) if event_us is not None]
        return RefusedObservations(node, count_by_window(events_us), len(items) - len(events_us))
    return RefusedObservations(node, untimed=estimate_max_count(size_bytes))


def _split_items(node: NodeName, items: list[Any]) -> PostedBody:
    """Split the items of a body into valid observations and faults."""
    good: list[PostedObservation] = []
    events_us: list[int] = []
    bad: set[int] = set()
    told: dict[int, list[Fault]] = {}
    for at, item in enumerate(items):
        try:
            one = PostedObservation.model_validate(item)
        except ValidationError as error:
            faults = _list_faults(at, error) if len(told) < MAX_FAULTS else []
        else:
            fault = one.find_fault()
            if fault is None:
                good.append(one)
                continue
            faults = [Fault(f"/{ITEMS}/{at}", fault)]
        bad.add(at)
        if len(told) < MAX_FAULTS:
            told[at] = faults
        moment_us = _parse_item_time(item)
        events_us += [] if moment_us is None else [moment_us]
    refused = RefusedObservations(node, count_by_window(events_us), len(bad) - len(events_us))
    if not good:
        raise _bad_body_problem(refused, [fault for faults in told.values() for fault in faults][:MAX_FAULTS])
    return PostedBody(node, good, refused, frozenset(bad), told)


def _list_faults(at: int, error: ValidationError) -> list[Fault]:
    found = error.errors(include_url=False, include_input=False)[:MAX_FAULTS]
    return [Fault(json_pointer((ITEMS, at, *one["loc"])), str(one["msg"])[:200]) for one in found]


def _parse_item_time(item: object) -> int | None:
    """Return the event time of an item, if it can be read."""
    try:
        return parse_event_us(item.get("event_time")) if isinstance(item, dict) else None
    except PydanticCustomError:
        return None


def _bad_body_problem(refused: RefusedObservations, faults: list[Fault]) -> RefusalProblem:
    told = "the body holds what no observation can: see errors"
    return RefusalProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-observations", told, faults, refused=refused)
