"""Tests of the target's language: forms that are read, and errors that name what was got."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.rate.target import GRAMMAR, LagCondition, Target, TargetError, parse_target


def test_a_target_is_read() -> None:
    """Conditions in any order, in ms and s, with or without loss."""
    assert parse_target("e2e p95 <= 500 ms and loss = 0") == Target((LagCondition(0.95, 0.5),), 0.0)
    assert parse_target("loss <= 0.1 %") == Target((), 0.001)
    assert parse_target(" E2E p99<=1.5s AND e2e p50 <= 20ms ") == Target(
        (LagCondition(0.5, 0.02), LagCondition(0.99, 1.5))
    )


@given(
    st.dictionaries(st.sampled_from((0.5, 0.95, 0.99)), st.integers(1, 10**8), min_size=1),
    st.none() | st.integers(0, 99),
)
def test_a_target_is_read_as_it_is_written(limits_ms: dict[float, int], percent: int | None) -> None:
    """The text of a target is the target."""
    lags = tuple(LagCondition(quantile, limit / 1e3) for quantile, limit in sorted(limits_ms.items()))
    target = Target(lags, None if percent is None else percent / 100)
    found = parse_target(str(target))
    assert [one.quantile for one in found.lags] == [one.quantile for one in lags]
    assert [one.limit_s for one in found.lags] == pytest.approx([one.limit_s for one in lags])
    assert found.max_loss_ratio == (None if percent is None else pytest.approx(percent / 100))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", f"a target is {GRAMMAR}; got ''"),
        ("e2e p90 <= 5 s", f"a target is {GRAMMAR}; got 'e2e p90 <= 5 s'"),
        ("e2e p95 <= 5 s or loss = 0", f"a target is {GRAMMAR}; got 'e2e p95 <= 5 s or loss = 0'"),
        ("e2e p95 < 5 s", f"a target is {GRAMMAR}; got 'e2e p95 < 5 s'"),
        ("loss = 1", f"a target is {GRAMMAR}; got 'loss = 1'"),
        ("e2e p95 <= 0 ms", "a lag is bounded by more than 0, got 'e2e p95 <= 0 ms'"),
        ("e2e p95 <= 1 s and e2e p95 <= 2 s", "p95 is bounded twice in 'e2e p95 <= 1 s and e2e p95 <= 2 s': bound it"),
        ("loss = 0 and loss <= 1 %", "loss is bounded twice in 'loss = 0 and loss <= 1 %': bound it once"),
        ("loss <= 100 %", "a loss is bounded by less than 100 %, got 100 %"),
    ],
)
def test_what_is_no_target_is_named(text: str, told: str) -> None:
    """The error has the part that was got, and the allowed forms."""
    with pytest.raises(TargetError) as caught:
        parse_target(text)
    assert str(caught.value).startswith(told)
