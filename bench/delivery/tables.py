"""Tables of deliveries; numbers only, the conclusions are the reader's."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table

from bench.delivery.comparison import GOAL_PER_S, WHO, DeliveryLine
from bench.delivery.programs import HOPWATCH
from bench.table_style import NONE, format_number, new_table


def delivery(lines: Sequence[DeliveryLine]) -> Group:
    """Return the programs without a wait, and all with a round trip, by batch and requests under way."""
    without = [line for line in lines if not line.terms.wait_s]
    return Group(_programs(without), *_round_trips([line for line in lines if line.terms.wait_s]))


def _programs(lines: Sequence[DeliveryLine]) -> Table:
    table = new_table(
        "Delivery of a backlog, broker and receiver on the same 2 cores",
        ("program",),
        ("batch", "parallel", "messages/s", "least", "most", "goal", "CPU µs a message", "memory MB"),
    )
    for line in lines:
        goal = GOAL_PER_S if line.terms.kind == HOPWATCH else None
        rates = (line.rate, min(line.rates), max(line.rates), goal, line.cpu_us, line.memory_bytes / 1e6)
        table.add_row(
            WHO[line.terms.kind],
            f"{line.terms.batch:,}",
            f"{line.terms.parallel}",
            *(format_number(one, 0) for one in rates),
        )
    return table


def _round_trips(lines: Sequence[DeliveryLine]) -> list[Table]:
    """Return a table for each program: expel time, which is the time for one message, and what it is of the serial."""
    tables = []
    for kind in dict.fromkeys(line.terms.kind for line in lines):
        mine = [line for line in lines if line.terms.kind == kind]
        table = new_table(
            f"{WHO[kind]}, a receiver that answers after {mine[0].terms.wait_s * 1e3:g} ms",
            (),
            ("batch", "parallel", "messages/s", "least", "most", "expel ms a message", "times serial"),
        )
        for line in mine:
            serial = [one.rate for one in mine if one.terms.batch == line.terms.batch and one.terms.parallel == 1]
            times = format_number(line.rate / serial[0], 1) if serial and line.terms.parallel > 1 else NONE
            rates = (format_number(one, 0) for one in (line.rate, min(line.rates), max(line.rates)))
            expel_ms = format_number(1e3 / line.rate, 3)
            table.add_row(f"{line.terms.batch:,}", f"{line.terms.parallel}", *rates, expel_ms, times)
        tables.append(table)
    return tables
