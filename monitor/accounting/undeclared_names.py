"""Undeclared names of streams and nodes: the probes that use them, and the declared name that may be meant.

The names are untrusted text. At most ``MAX_NAMES`` of them are kept; the records of all others are counted as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.stream_config import StreamConfig

MAX_NAMES: Final = 200
MAX_PROBE_CHARS: Final = 128
UNKNOWN_NODE: Final = "unknown_node"
"""The reason of a record whose node the path of its stream does not have: it may be a misspelt one of the path's."""
UNKNOWN_STREAM: Final = "unknown_stream"
IGNORED_NODE: Final = "ignored_node"
"""The reason of a record whose node ``ignore_nodes`` of its stream names."""
_LATEST_US: Final = 253_402_300_799_000_000
"""The last second of the year 9999; what says to have started later has no date."""

NameKey = tuple[str, str, str]
"""Reason, stream and node: all instances of a service misspell it alike, and each is a probe of its own."""


@dataclass(frozen=True, slots=True)
class UndeclaredName:
    """The records under a name that is not declared; ``probe`` is the newest that sent one, started at ``epoch_us``.

    ``nearest`` is the declared name that is most like it, empty where none is. Without stream, node and probe it stands
    for all names beyond the bound.
    """

    reason: str
    stream: str
    node: str
    probe: str
    epoch_us: int
    nearest: str
    records: int
    first_arrival_us: int
    last_arrival_us: int

    @property
    def key(self) -> NameKey:
        """Key of the name."""
        return self.reason, self.stream, self.node


def merge_records(
    known: Mapping[NameKey, UndeclaredName], records: Iterable[SetAside], rules: Mapping[str, StreamConfig]
) -> dict[NameKey, UndeclaredName]:
    """Return what is known with more records that were set aside; those whose names are declared change nothing."""
    kept = dict(known)
    named = sum(bool(one.stream) for one in kept.values())
    for record in records:
        if record.sender is None or record.reason not in {UNKNOWN_NODE, UNKNOWN_STREAM}:
            continue
        sender = record.sender
        key = record.reason, sender.stream, sender.node
        newest, near = (sender.epoch_us, sender.probe[:MAX_PROBE_CHARS]), ""
        if key not in kept and named == MAX_NAMES:
            key, newest = (record.reason, "", ""), (0, "")
        elif key not in kept:
            named += 1
            near = _find_nearest_declared(key, rules)
        before = kept.get(key) or UndeclaredName(
            *key, newest[1], newest[0], near, 0, record.arrival_us, record.arrival_us
        )
        epoch_us, probe = max((before.epoch_us, before.probe), newest)
        kept[key] = replace(
            before,
            probe=probe,
            epoch_us=epoch_us,
            records=before.records + 1,
            first_arrival_us=min(before.first_arrival_us, record.arrival_us),
            last_arrival_us=max(before.last_arrival_us, record.arrival_us),
        )
    return kept


def find_nearest(name: str, declared: Iterable[str]) -> str:
    """Return the declared name that is most like a name, empty where none is; small and capital letters are alike."""
    by_letters = {one.lower(): one for one in declared}
    return next((by_letters[found] for found in get_close_matches(name.lower(), by_letters, n=1)), "")


def describe_name(one: UndeclaredName) -> str:
    """Return in words what came under a name, from whom, and what may be meant; what strangers wrote is escaped."""
    what = "1 record" if one.records == 1 else f"{one.records:,} records"
    verb = "names" if one.records == 1 else "name"
    last = f"the last arrived {format_iso(one.last_arrival_us)}"
    if not one.stream:
        others = "nodes that no path has" if one.reason == UNKNOWN_NODE else "streams that are not declared"
        return f"{what} {verb} other {others}: only the first {MAX_NAMES} names are kept; {last}"
    if one.reason == UNKNOWN_NODE:
        told = f"{what} of {one.stream!r} {verb} the node {one.node!r}, which its path does not have"
        place = ""
    else:
        told = f"{what} {verb} the stream {one.stream!r}, which is not declared"
        place = f" at node {one.node!r}"
    meant = f": did you mean {one.nearest!r}?" if one.nearest else "."
    started = f", started {format_iso(one.epoch_us)}" if 0 <= one.epoch_us <= _LATEST_US else ""
    return f"{told}{meant} Newest probe: {one.probe!r}{place}{started}; {last}"


def _find_nearest_declared(key: NameKey, rules: Mapping[str, StreamConfig]) -> str:
    reason, stream, node = key
    if reason == UNKNOWN_NODE:
        return find_nearest(node, rules[stream].pathway.declared)
    return find_nearest(stream, (name for name, config in rules.items() if not config.is_removed))
