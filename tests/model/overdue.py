"""Expected figures of what is overdue in a window that is not final, by sets of ids."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.model.books import Instance, Unheard
from tests.model.intake import MINUTE_US, PULSE, Intake, Stream, take_in
from tests.model.model import JudgedWindow, find_instances
from tests.model.naming import shown
from tests.model.record import DEFERRED
from tests.model.sets import NONE, Ids
from tests.model.unreadable_records import unheard
from tests.model.wire import Received, read_spool

SECOND_US = 1_000_000
MOST_IDS = 20
NOTHING: tuple[int, tuple[str, ...]] = (0, ())

Overdue = tuple[int, tuple[str, ...]]
"""How many messages are overdue, and some of their ids."""


class OverdueWindow(JudgedWindow):
    """A window that is judged up to a moment, by those messages alone that are due by then."""

    def __init__(
        self,
        stream: Stream,
        start_us: int,
        inside: Sequence[Received],
        instances: Sequence[Instance | Unheard],
        intake: Intake,
        streams: Mapping[str, Stream],
        through_us: int,
    ) -> None:
        """Take what a window takes, and the moment."""
        self.through_us = through_us
        super().__init__(stream, start_us, inside, instances, intake, streams)
        self.endless = NONE
        self.last_us: dict[bytes, int] = {}
        deferred: set[bytes] = set()
        for one in inside:
            whole_us = -(-one.arrival_us // SECOND_US) * SECOND_US
            for seen in one.batch.observations:
                self.last_us[seen.message_id] = max(whole_us, self.last_us.get(seen.message_id, whole_us))
                if seen.outcome == DEFERRED:
                    deferred.add(seen.message_id)
        for message_id in deferred:
            del self.last_us[message_id]

    def _horizon_us(self, last_sighting_us: int) -> int:
        del last_sighting_us
        return self.through_us

    def shown_lost_at(self, node: str) -> Ids:
        """Give of the loss that N shows what is due there."""
        deadline_us = self.stream.deadlines_us.get(node)
        if deadline_us is None:
            return NONE
        return super().shown_lost_at(node) & self.due_at(deadline_us)

    def due_at(self, deadline_us: int) -> Ids:
        """Give the messages of which nothing was heard for a deadline."""
        return frozenset(one for one, last_us in self.last_us.items() if last_us <= self.through_us - deadline_us)

    def figures_at(self, node: str) -> Overdue:
        """Give what is overdue at N, and where any is, the first of the messages that are due there."""
        count, deadline_us = self.loss_lower(node), self.stream.deadlines_us.get(node)
        if not count or deadline_us is None:
            return NOTHING
        missing = self.sets.lost_in_transit(node) | self.sets.lost_inside(node) | self.sets.lost_after(node)
        named = sorted(missing & self.due_at(deadline_us))[:MOST_IDS]
        return count, tuple(shown(self.pathway, one, self.observed) for one in named)


def overdue(
    streams_config: Mapping[str, Mapping[str, Any]], spool_dir: Path, watermark_us: int, read_through_us: int
) -> dict[tuple[str, int], dict[str, Overdue]]:
    """Give what is overdue in each window, by stream and start in µs: at each node, and end to end under "".

    The directory has all that arrived by a moment, which is read; windows that are final by the watermark are left out.
    """
    streams = {name: Stream.of(table) for name, table in streams_config.items()}
    intake = take_in(read_spool(spool_dir), streams | {PULSE: Stream.of({"path": "monitor"})})
    found: dict[tuple[str, int], dict[str, Overdue]] = {}
    for name, stream in streams.items():
        instances = find_instances(name, stream, intake)
        everybody: list[Instance | Unheard] = [*instances.values(), *unheard(name, stream, intake, instances)]
        for start_us in {one.window_us for one in intake.in_windows if one.batch.stream == name}:
            if start_us + MINUTE_US + stream.transit_us + stream.settle_us <= watermark_us:
                continue
            inside = [one for one in intake.in_windows if one.batch.stream == name and one.window_us == start_us]
            through_us = read_through_us - stream.settle_us
            window = OverdueWindow(stream, start_us, inside, everybody, intake, streams, through_us)
            at_nodes = {node: window.figures_at(node) for node in stream.pathway.nodes}
            figures = at_nodes | {"": (window.lost_lower(), ())}
            found[name, start_us] = figures if start_us <= through_us else dict.fromkeys(figures, NOTHING)
    return found
