"""The law of the link through Kafka: a node may be killed at any moment, and nothing is lost."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.demo.faults import Dice, NodeFaults
from hopwatch.demo.links.topics import TopicInlet
from hopwatch.demo.nodes.process import NextNode, relay_messages
from hopwatch.demo.nodes.settings import NodeSettings
from hopwatch.demo.nodes.step import NodeStep
from hopwatch.demo.records import FlightMessage, pack_message, unpack_message
from hopwatch.demo.truth import NodeAction, TruthLog, count_actions
from tests.demo.links.memory_broker import KilledError, PaperBroker
from tests.demo.simulation import NOON_US, PaperProbe, message_id

COUNT = 30
FAULTS = st.builds(
    NodeFaults,
    drop_ratio=st.sampled_from([0.0, 0.2]),
    duplicate_ratio=st.sampled_from([0.0, 0.3]),
    delay_s=st.sampled_from([0.0, 0.5]),
)


class PaperEnds:
    """Links of a node to a broker on paper."""

    is_reliable = True

    def __init__(self, broker: PaperBroker) -> None:
        """Take the broker."""
        self._broker = broker

    def inlet(self) -> TopicInlet:
        """Return where messages come from."""
        return self._broker.inlet("norm", self._broker.clock.monotonic_s)


def run(broker: PaperBroker, faults: NodeFaults, log: Path) -> bool:
    """Run a norm until it has done all, or is killed; return whether it ended by itself."""
    ends: Any = PaperEnds(broker)
    clock = broker.clock
    settings = NodeSettings("norm", "", ends, "", 1.0, 0, faults)
    with closing(TruthLog(log)) as truth:
        step = NodeStep(
            probe=PaperProbe(clock, 0.0),
            truth=truth,
            dice=Dice(0, "norm", faults),
            delay_s=faults.delay_s,
            work=dict,
            hop=NextNode(broker.outlet("connector")),
            monotonic_s=clock.monotonic_s,
            now_us=clock.now_us,
        )
        try:
            relay_messages(settings, step, lambda: True)
        except KilledError:
            return False
        finally:
            broker.calls_left = -1
    return True


@given(FAULTS, st.lists(st.integers(1, 120), max_size=4))
def test_a_node_that_is_killed_loses_nothing(faults: NodeFaults, kills: list[int]) -> None:
    """Over at-least-once links, a node killed at any moment hands on all that it did not drop by wish."""
    broker = PaperBroker()
    sent = [FlightMessage(message_id(number), number, NOON_US, {}) for number in range(COUNT)]
    broker.topics["norm"] += [pack_message(message) for message in sent]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "norm"
        for calls in kills:
            broker.calls_left = calls
            run(broker, faults, log)
        assert run(broker, faults, log)
        dice = Dice(0, "norm", faults)
        passing = {message.id for message in sent if dice.fate(message.number).value != "drop"}
        left = [unpack_message(payload).id for payload in broker.topics["connector"]]
        assert set(left) == passing
        assert broker.committed == {"norm": COUNT}
        # A kill between the broker's having it and the note leaves it noted when it comes again, and never more.
        assert count_actions(log, NodeAction.HANDED_ON) + count_actions(log, NodeAction.REPEATED) <= len(left)
        assert count_actions(log, NodeAction.HANDED_ON) >= len(passing)
