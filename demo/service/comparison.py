"""Lines of the service's table: what the account of sender and receivers says, and Hopwatch's report beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hopwatch.demo.comparison_line import ComparisonLine, expect_at_most, expect_equal
from hopwatch.demo.faults import Faults
from hopwatch.demo.measurements import Measurements
from hopwatch.demo.service.account import ReceiverAccount, ServiceAccount


def compare_account(
    account: ServiceAccount, measured: Measurements, faults: Faults, reported_deferrals: int, under_way_count: int
) -> Iterator[ComparisonLine]:
    """Yield the lines: those of all messages first, then each receiver's.

    ``reported_deferrals`` is the count that the deliveries themselves gave. A refused message comes again if a kill of
    a delivery fell between answer and commit, ``under_way_count`` at most at all of them together, or if the gate was
    killed between commit and answer, and the message sent again.
    """
    yield _compare_acknowledged(account, measured, faults)
    yield _compare_lost(account, measured)
    yield expect_equal("phantom", "", len(account.phantoms), 0)
    yield expect_equal("taken and refused", "", len(account.both), 0)
    for one in account.receivers:
        yield from _compare_receiver(one, measured, faults)
    again = sum(one.refused_again_count for one in account.receivers)
    most = under_way_count + account.repeat_count
    yield ComparisonLine("refused again", "", f"{again:,}", "≤", f"{most:,} at most" if most else "0", again <= most)
    deferred = sum(one.deferral_count for one in account.receivers)
    known = expect_at_most if faults.blurred.intersection(one.name for one in account.receivers) else expect_equal
    yield known("deferred, times", "", deferred, reported_deferrals)
    if not faults.blurred:
        yield expect_equal("deferred in the end", "", 0, sum(window["deferred"] for window in measured.windows))


def _compare_acknowledged(account: ServiceAccount, measured: Measurements, faults: Faults) -> ComparisonLine:
    known = expect_at_most if "gate" in faults.blurred else expect_equal
    return known("acknowledged", "gate", len(account.acknowledged), measured.node_total("gate", "departed"))


def _compare_receiver(one: ReceiverAccount, measured: Measurements, faults: Faults) -> Iterator[ComparisonLine]:
    known = expect_at_most if one.name in faults.blurred else expect_equal
    yield known("taken", one.name, len(one.taken), measured.node_total(one.name, "departed"))
    yield known("refused", one.name, len(one.refused), measured.node_total(one.name, "rejected"))
    is_same = np.array_equal(one.kept, one.refused)
    records = f"{one.kept_count:,}" + ("" if is_same else ", of other messages")
    yield ComparisonLine("kept as rejected", one.name, f"{len(one.refused):,}", "=", records, is_same)
    repeated = measured.node_total(one.name, "duplicates_out")
    yield expect_at_most("taken again", one.name, one.repeat_count, repeated)


def _compare_lost(account: ServiceAccount, measured: Measurements) -> ComparisonLine:
    """Return the line of what was lost, and no fault dropped: there must be none, and none may be called so."""
    surely = max(0, measured.total("lost_lower") - len(account.dropped))
    lost = len(account.lost)
    return ComparisonLine("lost without a fault", "", f"{lost:,}", "=", f"{surely:,} surely", not lost and not surely)
