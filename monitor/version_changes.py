"""Changes between two versions of a stream's configuration, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hopwatch.monitor.pathway import COUNT, Pathway
from hopwatch.monitor.settings.durations import format_duration_us
from hopwatch.monitor.stream_config import StreamConfig

_TERMS: Final = ("transit", "settle", "amend_for", "max_age")


def describe_changes(before: StreamConfig, now: StreamConfig) -> list[str]:
    """Return each change, such as ``node sink added`` or ``transit 2m30s -> 1m``; empty where there is none."""
    if now.is_removed:
        return [] if before.is_removed else ["stream removed"]
    again = ["stream declared again"] if before.is_removed else []
    return [*again, *_describe_path(before.pathway, now.pathway), *_describe_terms(before, now)]


def _describe_path(before: Pathway, now: Pathway) -> Iterator[str]:
    for node in now.declared:
        if node not in before.declared:
            yield f"node {node} added"
    for node in before.declared:
        if node not in now.declared:
            yield f"node {node} removed"
    arrows, earlier = _list_arrows(now), _list_arrows(before)
    yield from (f"arrow {arrow} added" for arrow in arrows if arrow not in earlier)
    yield from (f"arrow {arrow} removed" for arrow in earlier if arrow not in arrows)
    sides = _read_stamps(before)
    for node, stamps in _read_stamps(now).items():
        if sides.get(node, stamps) != stamps:
            yield f"stamps of {node}: {sides[node]} -> {stamps}"


def _describe_terms(before: StreamConfig, now: StreamConfig) -> Iterator[str]:
    for name in _TERMS:
        then_us, now_us = getattr(before.terms, f"{name}_us"), getattr(now.terms, f"{name}_us")
        if then_us != now_us:
            yield f"{name} {format_duration_us(then_us)} -> {format_duration_us(now_us)}"
    for name in ("shards", "max_lost_ids"):
        if getattr(before, name) != getattr(now, name):
            yield f"{name} {getattr(before, name)} -> {getattr(now, name)}"
    yield from _describe_deadlines(dict(before.deadlines), dict(now.deadlines))
    if before.order != now.order:
        yield f"order of messages {'counted' if now.order else 'not counted'}"
    if before.ignore_nodes != now.ignore_nodes:
        yield f"ignore_nodes {_join_names(before.ignore_nodes)} -> {_join_names(now.ignore_nodes)}"


def _describe_deadlines(before: Mapping[str, int], now: Mapping[str, int]) -> Iterator[str]:
    for node in dict.fromkeys([*before, *now]):
        spans = [format_duration_us(named[node]) if node in named else "none" for named in (before, now)]
        if spans[0] != spans[1]:
            yield f"deadline of {node}: {spans[0]} -> {spans[1]}"


def _list_arrows(pathway: Pathway) -> list[str]:
    """Return the arrows between nodes with ids; of a one-of group a message takes one."""
    return [
        f"{pathway.nodes[group.source]} -> {' | '.join(pathway.nodes[target] for target in group.targets)}"
        for group in pathway.groups
    ]


def _read_stamps(pathway: Pathway) -> dict[str, str]:
    return dict(zip(pathway.nodes, pathway.stamps, strict=True)) | {node.name: COUNT for node in pathway.counting}


def _join_names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
