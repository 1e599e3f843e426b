"""Laws of the verdict: no false loss, whatever the monitor was not told."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.results import Verdict
from tests.laws.verdict_worlds import HEARD, ToldWindow, told_windows


@given(told_windows())
def test_a_lower_bound_claims_no_more_than_was_lost(window: ToldWindow) -> None:
    """No false loss: at no node and not end to end, whatever is missing from the accounts."""
    result = window.concluded()
    for place, node in enumerate(result.nodes):
        assert node.loss_lower <= sum(place in truth.lost_at for truth in window.truths)
    assert result.lost_lower <= sum(bool(truth.lost_at) for truth in window.truths)


IDS: Final = st.integers(0, 2)


@given(told_windows("cccd"), st.data())
def test_other_ids_are_no_loss(window: ToldWindow, data: st.DataObject) -> None:
    """Replicas may call messages otherwise than those before them: what was lost is unknown then, never made up."""
    replicas = [(node, replica) for node in range(len(window.accounts)) for replica in (0, 1)]
    names = data.draw(st.dictionaries(st.sampled_from(replicas), st.tuples(IDS, IDS)))
    result = replace(window, names=names).concluded()
    for place, node in enumerate(result.nodes):
        assert node.loss_lower <= sum(place in truth.lost_at for truth in window.truths)


@given(told_windows("cccdhs-"))
def test_an_upper_bound_end_to_end_holds_all_that_was_lost(window: ToldWindow) -> None:
    """The upper bound of loss end to end, if there is one, is at least the true loss."""
    upper = window.concluded().lost_upper
    assert upper is None or window.lost <= upper


@given(told_windows())
def test_lower_bounds_are_no_more_than_what_is_missing(window: ToldWindow) -> None:
    """The figure that is shown lies between its bounds."""
    result = window.concluded()
    bounds = [(node.loss_lower, node.loss, node.loss_upper) for node in result.nodes]
    for lower, shown, upper in [*bounds, (result.lost_lower, result.lost, result.lost_upper)]:
        assert 0 <= lower <= shown
        assert upper is None or shown <= upper


@given(told_windows("c"))
def test_with_complete_books_all_is_known(window: ToldWindow) -> None:
    """Bounds meet at the truth, and the verdict is LOSSY, CLEAN or IDLE."""
    result = window.concluded()
    assert result.lost_lower == result.lost == result.lost_upper
    assert all(node.loss_lower == node.loss == node.loss_upper for node in result.nodes)
    assert result.verdict in (Verdict.LOSSY, Verdict.CLEAN, Verdict.IDLE)
    assert result.reasons == ()


MEANING: Final = {
    Verdict.SILENT: lambda window: not any(account in HEARD for account in window.accounts),
    Verdict.IDLE: lambda window: not (window.truths and window.is_known),
    Verdict.LOSSY: lambda window: any(truth.lost_at for truth in window.truths),
    Verdict.CLEAN: lambda window: not (window.lost and window.is_known),
    Verdict.UNKNOWN: lambda window: any(account != "c" for account in window.accounts),
}


@given(told_windows())
def test_a_verdict_is_true_to_what_happened(window: ToldWindow) -> None:
    """Silent, nobody was heard; idle, nothing came; lossy, something was lost; clean, nothing was; unknown, a hole.

    Idle and clean speak of the messages that are known: one whose only observations name a moment that cannot be, or a
    node that is not declared, is none of them.
    """
    verdict = window.concluded().verdict
    assert verdict is not None
    assert MEANING[verdict](window)


@given(told_windows())
def test_unknown_is_never_without_a_reason(window: ToldWindow) -> None:
    """Nor is silence; and what is clean or idle gives none."""
    result = window.concluded()
    assert bool(result.reasons) >= (result.verdict in (Verdict.UNKNOWN, Verdict.SILENT))
    assert not result.reasons or result.verdict not in (Verdict.CLEAN, Verdict.IDLE)
