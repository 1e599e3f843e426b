"""Paged list of the ids that are missing at a node, with search and CSV."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from hopwatch.dashboards.queries.models import Graph
from hopwatch.dashboards.views import sheets
from hopwatch.monitor.kernel.naming import HASH_SUFFIX
from hopwatch.monitor.lookup.journey import parse_ids
from hopwatch.monitor.results import NodeResult, WindowResult, format_iso
from hopwatch.monitor.texts import loss_bounds

IDS_PER_PAGE: Final = 25
COLUMNS: Final = ("message_id", "stream", "window_start", "node", "last_seen", "known_of_it")
NOT_KNOWN: Final = "not known"

NamedId = tuple[bytes, str]
"""An id, and how it is shown."""


@dataclass(frozen=True, slots=True)
class LostIdPage:
    """A page of ids, each with how it is shown; how many are looked for in all, and which page of how many this is."""

    ids: tuple[NamedId, ...]
    total: int
    part: int
    parts: int

    @property
    def previous(self) -> int | None:
        """The number of the page before it, None of the first."""
        return self.part - 1 if self.part > 1 else None

    @property
    def next(self) -> int | None:
        """The number of the page after it, None of the last."""
        return self.part + 1 if self.part < self.parts else None


def select_page(ids: Sequence[NamedId], search: str, part: int) -> LostIdPage:
    """Return the page ``part``, the last one if there are fewer, of the ids that a text may mean, or that hold it."""
    if search.strip():
        ids = _select_matches(ids, search.strip())
    parts = max(1, -(-len(ids) // IDS_PER_PAGE))
    here = min(part, parts)
    return LostIdPage(tuple(ids[(here - 1) * IDS_PER_PAGE : here * IDS_PER_PAGE]), len(ids), here, parts)


def format_counts(page: LostIdPage, node: str, kept: int) -> str:
    """Return which ids a page shows, of how many."""
    if not page.total:
        return f"None of the {kept:,} ids that are kept as missing at {node} is this text or contains it."
    first = (page.part - 1) * IDS_PER_PAGE + 1
    told = f"{first:,} to {first + len(page.ids) - 1:,} of {page.total:,}"
    return told if page.total == kept else f"{told} that match, of {kept:,}"


def format_hash_note(page: LostIdPage) -> str:
    """Return what to say of texts that are not known; nothing where all are."""
    if not any(shown.endswith(HASH_SUFFIX) for _, shown in page.ids):
        return ""
    return "Of some ids that are texts only the hashes were sent: hopwatch find TEXT looks for a text by its hash."


def format_certainty(one: WindowResult, name: str) -> str:
    """Return what is known of each message that is missing at a node: whether it is surely lost."""
    node = next((each for each in one.nodes if each.node == name), None)
    if node is None:
        return NOT_KNOWN
    part = loss_bounds.find_loss_part(node.lost_in_transit, node.lost_inside, node.lost_after)
    return loss_bounds.describe_missing(name, node.loss, node.loss_lower, part)


def is_sure(one: WindowResult, name: str) -> bool:
    """Return whether every message that is missing at a node is surely lost."""
    return any(node.node == name and 0 < node.loss <= node.loss_lower for node in one.nodes)


def build_redrive_commands(one: WindowResult, graph: Graph, name: str) -> tuple[str, str] | None:
    """Return the commands that find, and that send again, what is lost at a node in a window.

    None where ``hopwatch redrive`` would refuse: it sends what is proven lost, out of the topic of the node before.
    """
    has_node_before = any(graph.nodes[edge.target] == name for edge in graph.edges)
    if not (one.status.is_final and is_sure(one, name) and has_node_before):
        return None
    start = format_iso(one.window_start_us)
    what = f"hopwatch redrive --stream {shlex.quote(one.stream)} --node {shlex.quote(name)} --window {start}"
    state = shlex.quote(f"{one.stream}-{name}.redrive")
    return f"{what} --dry-run", f'{what} --rate 100 --state {state} --why "…" --wait 300'


def format_uuid(message_id: bytes) -> str:
    """Return an id as 32 digits with hyphens, which mean one id only: a number may be a text too."""
    return str(UUID(bytes=message_id))


def parse_shown(shown: str) -> str:
    """Return what means an id that is shown: of a text that is not known, its hash."""
    return shown.removesuffix(HASH_SUFFIX)


def format_overdue(node: NodeResult) -> str:
    """Return how many messages are overdue at a node, and which of them are listed."""
    are = "message is" if node.overdue == 1 else "messages are"
    why = "the deadline of the node has passed since the last sighting"
    which = f"Of those that are missing there for so long, the first {len(node.overdue_ids):,} are listed."
    return f"{node.overdue:,} {are} overdue at {node.node}, for sure: {why}. {which}"


def format_last_seen(graph: Graph, one: WindowResult, name: str) -> str:
    """Return where a message that is missing at a node was seen last, as far as the counts of the node tell."""
    node = next((each for each in one.nodes if each.node == name), None)
    if node is None:
        return NOT_KNOWN
    sources = [
        graph.nodes[edge.source] for edge in graph.edges if graph.nodes[edge.target] == name and edge.is_required
    ]
    told = [f"left {' or '.join(sources)}"] if node.lost_in_transit and sources else []
    told += [f"arrived at {name}"] if node.lost_inside else []
    told += [f"left {name}"] if node.lost_after else []
    return " or ".join(told) or NOT_KNOWN


def format_left_out(node: NodeResult | None, kept: int) -> str:
    """Return what to say of ids that are missing and are not kept; nothing if all are."""
    if node is None or node.loss <= kept:
        return ""
    return f"{node.loss:,} are missing and {kept:,} ids are kept: a higher max_lost_ids of the stream keeps more."


def build_csv(one: WindowResult, graph: Graph, node: str, ids: Sequence[NamedId]) -> str:
    """Return all ids that are kept as missing at a node as comma-separated values under a line of names."""
    seen, start = format_last_seen(graph, one, node), format_iso(one.window_start_us)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    named = sheets.escape_formula(one.stream), start, sheets.escape_formula(node), seen, format_certainty(one, node)
    writer.writerows((sheets.escape_formula(shown), *named) for _, shown in ids)
    return out.getvalue()


def build_file_name(one: WindowResult, node: str) -> str:
    """Return a name for that file that any system takes."""
    start = format_iso(one.window_start_us).replace(":", "").replace("-", "")
    named = (
        "".join(char for char in name if char.isascii() and (char.isalnum() or char in "._-"))
        for name in (one.stream, node)
    )
    what = "lost" if is_sure(one, node) else "missing"
    return "-".join((what, *(name for name in named if name), start)) + ".csv"


def _select_matches(ids: Sequence[NamedId], text: str) -> list[NamedId]:
    meant, part = set(parse_ids(text)), text.casefold()
    digits = part.replace("-", "")
    return [
        (message_id, shown)
        for message_id, shown in ids
        if message_id in meant or digits in message_id.hex() or part in shown.casefold()
    ]
