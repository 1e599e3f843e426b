"""Layout of the service map: services in layers that messages pass one after the other, side by side or downwards."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

Pair = tuple[int, int]
Place = tuple[float, float]
"""Column and row of the middle of a service, from 0."""

SWEEPS: Final = 4
"""So often services of a layer are put in the order of their neighbours', forwards and backwards in turn."""
LAYER_GAP_ROWS: Final = 0.3
"""Space between layers that lie below each other."""
MAX_CHAIN_ROWS: Final = 8
"""A chain of more services does not go down, in a row for each, on any map."""


class MapShape(NamedTuple):
    """Shape of a map: the number of services beside each other, and whether messages flow down or to the right.

    A layer of more than ``line_services`` goes on in the next line, which is a row where messages flow down, else a
    column. So many lines as there are ``columns`` are beside each other; what is longer turns round, and comes back
    below.
    """

    columns: int
    line_services: int
    is_down: bool


class MapPlaces(NamedTuple):
    """Place of each service, and the number of columns and rows of the map."""

    places: tuple[Place, ...]
    columns: int
    rows: float


class _Block(NamedTuple):
    """Services that are connected, their places, and how many columns and rows they take."""

    services: tuple[int, ...]
    places: tuple[Place, ...]
    columns: int
    rows: float


def place_services(count: int, edges: Sequence[Pair], shape: MapShape, min_columns: int = 1) -> MapPlaces:
    """Return the places of so many services between which messages flow: each behind those that lead to it.

    Where they flow in a circle, it begins with the service that least leads to. Services that nothing connects stand
    apart, the groups that need most rows first; the map has at least so many columns.
    """
    edges = list(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))
    blocks = [
        _place_block(_order_layers(_assign_layers(group, edges), edges), edges, shape)
        for group in _find_groups(count, edges)
    ]
    blocks.sort(key=lambda block: -block.rows)
    places: list[Place] = [(0.0, 0.0)] * count
    left, used, top, high = 0, 0, 0.0, 0.0
    for block in blocks:
        if left + block.columns > shape.columns:
            left, top, high = 0, top + high, 0.0
        for service, (column, row) in zip(block.services, block.places, strict=True):
            places[service] = left + column, top + row
        left, high = left + block.columns, max(high, block.rows)
        used = max(used, left)
    columns = max(used, min(min_columns, shape.columns))
    return MapPlaces(tuple((column + (columns - used) / 2, row) for column, row in places), columns, top + high)


def _find_groups(count: int, edges: Sequence[Pair]) -> list[list[int]]:
    """Return the services by what connects them, each group and the groups in order."""
    from scipy.sparse import coo_array  # noqa: PLC0415 - only a dashboard whose map is looked at loads SciPy
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - as above

    sources, targets = np.array(edges, np.int64).reshape(-1, 2).T
    linked = coo_array((np.ones(len(edges)), (sources, targets)), (count, count))
    found: dict[int, list[int]] = {}
    for service, of_group in enumerate(connected_components(linked, directed=False)[1].tolist() if count else ()):
        found.setdefault(of_group, []).append(service)
    return list(found.values())


def _assign_layers(services: Sequence[int], edges: Iterable[Pair]) -> list[list[int]]:
    """Return the services by the number of edges that lie before them at most."""
    known = set(services)
    targets: dict[int, list[int]] = {service: [] for service in services}
    waits = dict.fromkeys(services, 0)
    for source, target in edges:
        if source in known:
            targets[source].append(target)
            waits[target] += 1
    layer = dict.fromkeys(services, 0)
    due = [(waits[service], service) for service in services]
    heapq.heapify(due)
    done: set[int] = set()
    while due:
        waiting, service = heapq.heappop(due)
        if service in done or waiting != waits[service]:
            continue
        done.add(service)
        for target in targets[service]:
            if target not in done:
                waits[target] -= 1
                layer[target] = max(layer[target], layer[service] + 1)
                heapq.heappush(due, (waits[target], target))
    layers: list[list[int]] = [[] for _ in range(max(layer.values()) + 1)]
    for service in services:
        layers[layer[service]].append(service)
    return layers


def _order_layers(layers: list[list[int]], edges: Iterable[Pair]) -> list[list[int]]:
    """Return the layers, each in the order of its services' neighbours, so that fewer edges cross."""
    layer_of = {service: place for place, layer in enumerate(layers) for service in layer}
    before: dict[int, list[int]] = {service: [] for service in layer_of}
    behind: dict[int, list[int]] = {service: [] for service in layer_of}
    for source, target in edges:
        if source in layer_of:
            first, last = sorted((source, target), key=lambda one: layer_of[one])
            before[last].append(first)
            behind[first].append(last)
    at = {service: _middle(place, layer) for layer in layers for place, service in enumerate(layer)}
    for sweep in range(SWEEPS):
        beside = behind if sweep % 2 else before
        for place in sorted(range(len(layers)), reverse=sweep % 2 == 1):
            means = {one: fmean(at[each] for each in beside[one] or (one,)) for one in layers[place]}
            layers[place] = sorted(layers[place], key=means.__getitem__)
            at |= {service: _middle(each, layers[place]) for each, service in enumerate(layers[place])}
    return layers


def _middle(place: int, layer: Sequence[int]) -> float:
    """Return how far the place of a layer is from its middle."""
    return place - (len(layer) - 1) / 2


def _place_block(layers: Iterable[Sequence[int]], edges: Iterable[Pair], shape: MapShape) -> _Block:
    """Return the places of the layers of connected services."""
    lines = [(depth, line) for depth, layer in enumerate(layers) for line in _split_evenly(layer, shape.line_services)]
    services = tuple(service for _, line in lines for service in line)
    wide = max(len(line) for _, line in lines)
    if shape.is_down and (wide > 1 or len(lines) <= MAX_CHAIN_ROWS):
        places = [
            (place + (wide - len(line)) / 2, number + depth * LAYER_GAP_ROWS)
            for number, (depth, line) in enumerate(lines)
            for place in range(len(line))
        ]
        return _Block(services, tuple(places), wide, len(lines) + lines[-1][0] * LAYER_GAP_ROWS)
    row_of = _align_rows([line for _, line in lines], edges)
    places, bottom = [], 0.0
    for first in range(0, len(lines), shape.columns):
        turn = [line for _, line in lines[first : first + shape.columns]]
        rows = [row_of[service] for line in turn for service in line]
        for place, line in enumerate(turn):
            column = shape.columns - 1 - place if first // shape.columns % 2 else place
            places += [(float(column), bottom + row_of[service] - min(rows)) for service in line]
        bottom += max(rows) - min(rows) + 1
    return _Block(services, tuple(places), min(len(lines), shape.columns), bottom)


def _align_rows(lines: Iterable[Sequence[int]], edges: Iterable[Pair]) -> dict[int, float]:
    """Return the row of each service: as near to those that lead to it as the others of its column let it."""
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - as above

    before: dict[int, list[int]] = {}
    for source, target in edges:
        before.setdefault(target, []).append(source)
    rows: dict[int, float] = {}
    for line in lines:
        apart = np.arange(len(line))
        near = [[rows[one] for one in before.get(service, ()) if one in rows] for service in line]
        wanted = [fmean(each or (place,)) for place, each in enumerate(near)]
        # Rows a row apart at least, with the least sum of squares: a monotone regression.
        rows |= zip(line, (isotonic_regression(wanted - apart).x + apart).tolist(), strict=True)
    return rows


def _split_evenly(layer: Sequence[int], most: int) -> list[Sequence[int]]:
    """Return a layer in as few lines of at most so many services as it takes, all about as long."""
    count = -(-len(layer) // most)
    ends = [len(layer) * place // count for place in range(count + 1)]
    return [layer[begin:end] for begin, end in pairwise(ends)]
