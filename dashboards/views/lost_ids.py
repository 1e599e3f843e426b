"""The ids that are missing at a node, a page at a time: which are looked for, and where each was seen last."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from hopwatch.dashboards.reading.told import Graph
from hopwatch.dashboards.views import sheets
from hopwatch.monitor.kernel.naming import HASH_SUFFIX
from hopwatch.monitor.kernel.tally import MAX_LOST_IDS
from hopwatch.monitor.lookup.journey import parse_ids
from hopwatch.monitor.results import NodeResult, WindowResult, format_iso
from hopwatch.monitor.texts import loss_bounds

A_PAGE: Final = 25
COLUMNS: Final = ("message_id", "stream", "window_start", "node", "last_seen", "known_of_it")
NOT_KNOWN: Final = "not known"

Named = tuple[bytes, str]
"""An id, and how it is shown."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of ids, each with how it is shown; how many are looked for in all, and which page of how many this is."""

    ids: tuple[Named, ...]
    found: int
    part: int
    parts: int

    @property
    def before(self) -> int | None:
        """The number of the page before it, None of the first."""
        return self.part - 1 if self.part > 1 else None

    @property
    def after(self) -> int | None:
        """The number of the page after it, None of the last."""
        return self.part + 1 if self.part < self.parts else None


def page(ids: Sequence[Named], search: str, part: int) -> Page:
    """Return the page ``part``, the last one if there are fewer, of the ids that a text may mean, or that hold it."""
    if search.strip():
        ids = _sought(ids, search.strip())
    parts = max(1, -(-len(ids) // A_PAGE))
    here = min(part, parts)
    return Page(tuple(ids[(here - 1) * A_PAGE : here * A_PAGE]), len(ids), here, parts)


def counted(page: Page, node: str, kept: int) -> str:
    """Return which ids a page shows, of how many."""
    if not page.found:
        return f"None of the {kept:,} ids that are kept as missing at {node} is that, or holds it."
    first = (page.part - 1) * A_PAGE + 1
    told = f"{first:,} to {first + len(page.ids) - 1:,} of {page.found:,}"
    return told if page.found == kept else f"{told} that are looked for, of {kept:,}"


def hashed(page: Page) -> str:
    """Return what to say of texts that are not known; nothing where all are."""
    if not any(shown.endswith(HASH_SUFFIX) for _, shown in page.ids):
        return ""
    return "Of some ids that are texts only the hashes were sent: hopwatch find TEXT looks for a text by its hash."


def known_of(one: WindowResult, name: str) -> str:
    """Return what is known of each message that is missing at a node: whether it is surely lost."""
    node = next((each for each in one.nodes if each.node == name), None)
    if node is None:
        return NOT_KNOWN
    part = loss_bounds.find_loss_part(node.lost_in_transit, node.lost_inside, node.lost_after)
    return loss_bounds.describe_missing(name, node.loss, node.loss_lower, part)


def is_sure(one: WindowResult, name: str) -> bool:
    """Return whether every message that is missing at a node is surely lost."""
    return any(node.node == name and 0 < node.loss <= node.loss_lower for node in one.nodes)


def unmistakable(message_id: bytes) -> str:
    """Return an id as 32 digits with hyphens, which mean one id only: a number may be a text too."""
    return str(UUID(bytes=message_id))


def last_seen(graph: Graph, one: WindowResult, name: str) -> str:
    """Return where a message that is missing at a node was seen last, as far as the counts of the node tell."""
    node = next((each for each in one.nodes if each.node == name), None)
    if node is None:
        return NOT_KNOWN
    sources = [graph.nodes[edge.source] for edge in graph.edges if graph.nodes[edge.target] == name and edge.is_must]
    told = [f"left {' or '.join(sources)}"] if node.lost_in_transit and sources else []
    told += [f"arrived at {name}"] if node.lost_inside else []
    told += [f"left {name}"] if node.lost_after else []
    return " or ".join(told) or NOT_KNOWN


def beyond(node: NodeResult | None, kept: int) -> str:
    """Return what to say of ids that are missing and are not kept; nothing if all are."""
    if node is None or node.loss <= kept:
        return ""
    return f"{node.loss:,} are missing and {kept:,} ids are kept: the first {MAX_LOST_IDS:,} in byte order at most."


def table(one: WindowResult, graph: Graph, node: str, ids: Sequence[Named]) -> str:
    """Return all ids that are kept as missing at a node as comma-separated values under a line of names."""
    seen, start = last_seen(graph, one, node), format_iso(one.window_start_us)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    named = sheets.safe(one.stream), start, sheets.safe(node), seen, known_of(one, node)
    writer.writerows((sheets.safe(shown), *named) for _, shown in ids)
    return out.getvalue()


def file_name(one: WindowResult, node: str) -> str:
    """Return a name for that file that any system takes."""
    start = format_iso(one.window_start_us).replace(":", "").replace("-", "")
    named = (
        "".join(char for char in name if char.isascii() and (char.isalnum() or char in "._-"))
        for name in (one.stream, node)
    )
    what = "lost" if is_sure(one, node) else "missing"
    return "-".join((what, *(name for name in named if name), start)) + ".csv"


def _sought(ids: Sequence[Named], text: str) -> list[Named]:
    meant, part = set(parse_ids(text)), text.casefold()
    digits = part.replace("-", "")
    return [
        (message_id, shown)
        for message_id, shown in ids
        if message_id in meant or digits in message_id.hex() or part in shown.casefold()
    ]
