"""Tests of the faults: seeded, exact, and the same whenever a message comes."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.demo.faults import Dice, FaultAction, Faults, Kill, NodeFaults, draw_chance

MIXED = NodeFaults(drop_ratio=0.1, filter_ratio=0.2, reject_ratio=0.05, duplicate_ratio=0.3)


@given(st.integers(), st.text(), st.text(), st.integers(0))
def test_a_chance_is_a_share(seed: int, node: str, what: str, number: int) -> None:
    """Every draw lies in [0, 1), and is the same when drawn again."""
    assert 0 <= draw_chance(seed, node, what, number) < 1
    assert draw_chance(seed, node, what, number) == draw_chance(seed, node, what, number)


@given(st.permutations(range(200)))
def test_fate_depends_on_the_number_alone(order: list[int]) -> None:
    """In whatever order messages come, each has the fate that it has in order."""
    in_order = {number: Dice(7, "norm", MIXED).fate(number) for number in range(200)}
    dice = Dice(7, "norm", MIXED)
    assert {number: dice.fate(number) for number in order} == in_order


def test_ratios_are_met() -> None:
    """Of 50,000 messages each fate gets its ratio, within five standard deviations."""
    count = 50_000
    fates = Counter(Dice(1, "router", MIXED).fate(number) for number in range(count))
    wanted = {
        FaultAction.DROP: 0.1,
        FaultAction.FILTER: 0.2,
        FaultAction.REJECT: 0.05,
        FaultAction.DUPLICATE: 0.3,
        FaultAction.PASS: 0.35,
    }
    for fate, ratio in wanted.items():
        assert abs(fates[fate] - count * ratio) < 5 * (count * ratio * (1 - ratio)) ** 0.5


def test_another_seed_or_node_hits_other_messages() -> None:
    """The messages that are dropped differ between seeds and between nodes."""

    def dropped(seed: int, node: str) -> frozenset[int]:
        dice = Dice(seed, node, NodeFaults(drop_ratio=0.1))
        return frozenset(number for number in range(1000) if dice.fate(number) is FaultAction.DROP)

    assert len({dropped(0, "router"), dropped(1, "router"), dropped(0, "norm")}) == 3


def test_this_seed_hits_these_messages() -> None:
    """The draw is part of what a run can be repeated by: it may not change from version to version."""
    dice = Dice(0, "router", NodeFaults(drop_ratio=0.02))
    assert [number for number in range(200) if dice.fate(number) is FaultAction.DROP] == [46, 134, 139]


def test_without_faults_all_pass_and_with_all_none_does() -> None:
    """A ratio of 0 hits no message, a ratio of 1 every one."""
    assert {Dice(0, "norm", NodeFaults()).fate(number) for number in range(100)} == {FaultAction.PASS}
    assert {Dice(0, "norm", NodeFaults(drop_ratio=1.0)).fate(number) for number in range(100)} == {FaultAction.DROP}


def test_a_node_heals_with_a_message() -> None:
    """A node drops everything before the message with which it heals, and nothing from then on."""
    dice = Dice(0, "norm", NodeFaults(drop_ratio=1.0, healed_from=50))
    fates = {number: dice.fate(number) for number in reversed(range(100))}
    assert {number for number, fate in fates.items() if fate is FaultAction.DROP} == set(range(50))


def test_nodes_that_cannot_tell_all_are_blurred() -> None:
    """A kill and a refusing transport blur a node, the other faults do not."""
    faults = Faults(0, {"norm": NodeFaults(probe_drop_ratio=0.1), "router": MIXED}, (Kill("ingest", 5.0),))
    assert faults.blurred == {"norm", "ingest"}
    assert faults.killed == {"ingest"}
    assert faults.select_node("connector") == NodeFaults()
