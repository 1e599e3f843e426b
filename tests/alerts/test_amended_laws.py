"""Laws of amendment: alerts stand where they would stand if every window had said at once what it says last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from alerts import kept
from alerts.episode import MOST_WITH_IDS, NEW, Phase, Run, Series, State, heed, settle, step
from alerts.evaluate import Standing, evaluate
from alerts.events import Kind, Severity
from alerts.minute import Minute, Outlier
from alerts.reading import Reading, bad, good
from alerts.rules import Rule
from monitor.results import Status, Verdict
from tests.alerts.play import rules_of
from tests.alerts.windows import Memory, at, judged, lag

RULE: Final = Rule("loss", Kind.LOSS, Severity.PAGE, {"orders": 0.01}, for_windows=2, keep_windows=3)
SERIES: Final = Series("loss", "page", "orders", "b")
MINUTES: Final = 12

READINGS: Final = st.one_of(
    st.none(),
    st.just(good("b")),
    st.integers(1, 9).map(lambda lost: bad("b", lost / 10, 0.01, (lost, 10))._replace(lost_ids=(str(lost),))),
)
VERSIONS: Final = st.lists(st.tuples(st.integers(0, MINUTES - 1), READINGS), max_size=40)
"""What windows said, one after the other, in any order and as often as they were judged."""


def heeded(state: State, versions: Sequence[tuple[int, Reading | None]]) -> State:
    """Return the state with all of them."""
    for minute, reading in versions:
        state = heed(state, at(minute), RULE, reading)
    return state


def last(versions: Sequence[tuple[int, Reading | None]]) -> list[tuple[int, Reading | None]]:
    """Return what each window said last, in the order of the windows."""
    return sorted(dict(versions).items())


def folded(readings: Mapping[int, Reading | None]) -> Run:
    """Return the fold of what windows say, by nothing but steps."""
    run = NEW
    for minute, reading in sorted(readings.items()):
        run = run if reading is None else step(run, at(minute), RULE, is_bad=reading.is_bad)
    return run


def without_ids(state: State) -> State:
    """Return the state without lost ids, of which only the newest are kept."""
    return replace(state, bads={start: one._replace(lost_ids=()) for start, one in state.bads.items()})


@given(VERSIONS)
def test_only_the_last_version_of_each_window_counts(versions: list[tuple[int, Reading | None]]) -> None:
    """Run, marks and figures are those of the last versions in order; nothing is left of those before."""
    found = heeded(State(SERIES), versions)
    assert without_ids(found) == without_ids(heeded(State(SERIES), last(versions)))
    assert found.run == folded(dict(versions))
    standing = [(at(minute), one) for minute, one in last(versions) if one is not None and one.is_bad]
    assert list(found.bads) == [start for start, _ in standing]
    if standing:
        start_us, newest = standing[-1]
        assert (found.worst_us, found.worst._replace(lost_ids=())) == (start_us, newest._replace(lost_ids=()))
        assert sum(bool(one.lost_ids) for one in found.bads.values()) <= MOST_WITH_IDS


@given(VERSIONS, st.integers(0, MINUTES), VERSIONS)
def test_what_is_settled_stays_settled(
    before: list[tuple[int, Reading | None]], settled: int, behind: list[tuple[int, Reading | None]]
) -> None:
    """Behind it only the last versions count; of the settled ones the newest bad reading is still told."""
    state = settle(heeded(State(SERIES), before), at(settled), RULE)
    found = heeded(state, behind)
    can_change = [one for one in behind if at(one[0]) > state.base.upto_us]
    assert without_ids(found) == without_ids(heeded(state, last(can_change)))
    assert state.run == heeded(State(SERIES), before).run
    assert found.run.bads == 0 or found.bads
    assert kept.state_of(SERIES, kept.state_text(found)) == found


@given(VERSIONS, st.integers(0, MINUTES - 1))
def test_nothing_that_replaces_nothing_changes_nothing(versions: list[tuple[int, Reading | None]], minute: int) -> None:
    """A window that says nothing, and never did, leaves the state what it was, itself."""
    state = heeded(State(SERIES), [one for one in versions if one[0] != minute])
    assert heed(state, at(minute), RULE, None) is state


@given(VERSIONS)
def test_what_is_heeded_twice_is_heeded_once(versions: list[tuple[int, Reading | None]]) -> None:
    """A micro-batch that is replayed changes nothing."""
    once = heeded(State(SERIES), versions)
    assert heeded(once, last(versions)).run == once.run
    assert heeded(once, last(versions)).bads.keys() == once.bads.keys()


UNSEEN: Final = {name: {"seen": 0, "coverage": None} for name in "ab"}
ODD: Final = Outlier("messages", 3, 90, 110, 7.0)
HURT: Final[dict[str, Any]] = {
    "lost": {"a": 300, "b": 447},
    "lag_us": lag(9_000_000),
    "outliers": dict.fromkeys("ab", (ODD,)),
    "nodes": {
        name: {"lag_in_us": lag(9_000_000), "dropped": 400, "rejected": 300, "lag_negative": 500} for name in "ab"
    },
}
SAID: Final[dict[str, dict[str, Any]]] = {
    "well": {"outliers": {"a": (), "b": ()}, "nodes": {"b": {"lag_in_us": lag(1_000)}}, "lag_us": lag(1_000)},
    "nothing came": {"known": 0},
    "hurt": HURT,
    "lost": {"lost": {"b": 20}},
    "a little": {"lost": {"a": 3}},
    "unknown": {"verdict": Verdict.UNKNOWN, "lost": {"b": 447}, "lost_lower": 0, "nodes": {"b": {"loss_lower": 0}}},
    "late and unknown": HURT | {"verdict": Verdict.UNKNOWN, "lost": {}, "lost_upper": None},
    "blind": {"verdict": Verdict.UNKNOWN, "known": 0, "nodes": UNSEEN},
    "silent": {"verdict": Verdict.SILENT, "known": 0, "nodes": UNSEEN},
}
KNOWN: Final = ("hurt", "late and unknown", "blind", "silent")
"""Of every rule every place was bad in one of them."""
THRESHOLDS: Final = "".join(
    f'[[alerts.rules]]\nkind = "{kind}"\nthreshold = "1s"\nfor = "1m"\n' for kind in ("lag", "end_to_end_lag")
)


def standing(batches: Sequence[Sequence[Minute]], until: float) -> Standing:
    """Return what alerts remember after micro-batches, all of whose windows are final before a moment."""
    rules, memory, found = rules_of(THRESHOLDS), Memory(), Standing()
    for batch in batches:
        for minute in batch:
            memory.count(minute)
        found = evaluate(rules, batch, found, at(until), memory).standing
    return found


def told(of: Standing) -> dict[Series, tuple[Any, ...]]:
    """Return where alerts of streams stand, and what they say."""
    return {
        series: (state.run.phase, state.run.since_us, state.run.bads, state.run.goods, without_ids(state).bads)
        for series, state in of.states.items()
        if series.stream and state.run.phase is not Phase.OVER
    }


def version(minute: int, said: str) -> Minute:
    """Return a window that says something."""
    return judged(minute, status=Status.AMENDED, **SAID[said])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(SAID)), min_size=1, max_size=9),
    st.lists(st.lists(st.tuples(st.integers(0, 8), st.sampled_from(sorted(SAID))), max_size=4), max_size=6),
)
def test_alerts_of_every_kind_stand_by_what_windows_say_last(
    first: list[str], amended: list[list[tuple[int, str]]]
) -> None:
    """In however many micro-batches they were amended: where none had ever said anything else.

    Of a place nothing is remembered before its first bad window; here these come before, and are not amended.
    """
    known = [version(minute, said) for minute, said in enumerate(KNOWN)]
    windows = {minute: version(minute, said) for minute, said in enumerate(first, len(known))}
    batches = [[[one] for one in (*known, *windows.values())]]
    changes = [{len(known) + minute % len(first): said for minute, said in batch} for batch in amended]
    batches.append([[version(minute, said) for minute, said in batch.items()] for batch in changes])
    for batch in changes:
        windows |= {minute: version(minute, said) for minute, said in batch.items()}
    found = standing([*batches[0], *batches[1]], 13)
    expected = standing([[one] for one in (*known, *windows.values())], 13)
    assert told(found) == told(expected)
    assert {series.rule for series in told(standing([[one] for one in known], 13))} >= {"loss", "burn_rate"}
