"""Tests of the bench of the probe for the JVM: what its program prints, and the table."""

from __future__ import annotations

from bench.jvm_cost import MessageCost, build_table, read_costs
from tests.bench.table_cells import cells


def test_rounds_of_a_name_are_one_cost() -> None:
    """Times are sorted, and of CPU the median is taken."""
    printed = "stamp,60.0,1400.0\nsend,2600.0,2800.0\nstamp,50.5,1500.0\nstamp,70.0,1000.0\n"
    assert read_costs(printed) == [
        MessageCost("stamp", (50.5, 60.0, 70.0), 1400.0),
        MessageCost("send", (2600.0,), 2800.0),
    ]


def test_the_table_has_medians_and_their_spread() -> None:
    """A row for each way."""
    shown = cells(build_table([MessageCost("send stamped", (4_000.0, 5_000.0, 6_500.0), 7_400.0)]))
    assert shown["`KafkaProducer.send`, stamped"] == ["5,000", "4,000", "6,500", "7,400"]
