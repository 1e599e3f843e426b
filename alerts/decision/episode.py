"""An episode: the readings of one rule at one place, in order of their windows, folded into where the alert stands.

The fold is over windows, not over time or batches: however windows come, in one batch or in many, the alert goes the
same way. Readings of windows that can still be amended are kept, so that an amendment folds them anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from hopwatch.alerts.decision.reading import Reading, good_reading
from hopwatch.alerts.decision.rules import AlertRule
from hopwatch.alerts.events import AlertKind
from hopwatch.probes.contract.limits import WINDOW_US

FLAP_MEMORY_US: Final = 6 * 3_600_000_000
"""An alert that fires again so soon after its end is flapping."""

MAX_KEEP_WINDOWS: Final = 60
"""How many good windows an alert that flaps waits for at most, unless the rule itself asks for more."""

MAX_MARKS: Final = 1_500
"""Of how many windows a place keeps its readings; a day has fewer."""

MAX_EARLIER: Final = 2
"""Of how many bad windows before the newest the figures are kept, for when that one is amended."""

BEGINNING_US: Final = -(2**63)


class Phase(StrEnum):
    """Where an alert stands: not bad for long enough yet, told or to be told, or neither."""

    PENDING = "pending"
    FIRING = "firing"
    OVER = "over"


class AlertSeries(NamedTuple):
    """What an alert is about; ``node`` is empty for the stream as a whole."""

    rule: str
    severity: str
    stream: str
    node: str


class AlertEpisode(NamedTuple):
    """The fold of all readings up to a window.

    ``bads`` counts the bad windows of this episode, ``goods`` the good ones since the last of them, ``flaps`` how often
    it fired again soon after its end, which was at ``ended_us``.
    """

    phase: Phase = Phase.OVER
    since_us: int = 0
    bads: int = 0
    goods: int = 0
    flaps: int = 0
    ended_us: int = BEGINNING_US
    upto_us: int = BEGINNING_US


NEW_EPISODE: Final = AlertEpisode()
NO_READING: Final = good_reading("")


@dataclass(frozen=True, slots=True)
class AlertState:
    """All that is remembered of one series.

    ``base`` is the fold of the windows that cannot change any more, ``marks`` says of later ones whether they are bad,
    ``run`` is the fold of all. ``worst`` is the newest bad reading that stands, of the window ``worst_us``, ``earlier``
    are some before it, by their windows. ``told_as`` is the key of the incident that it belongs to, ``covered_at_us``
    when another alert last stood for it.
    """

    series: AlertSeries
    base: AlertEpisode = NEW_EPISODE
    marks: Mapping[int, bool] = field(default_factory=dict)
    run: AlertEpisode = NEW_EPISODE
    worst: Reading = NO_READING
    worst_us: int = BEGINNING_US
    told_as: str = ""
    covered_at_us: int = BEGINNING_US
    earlier: Mapping[int, Reading] = field(default_factory=dict)


def fold_window(run: AlertEpisode, start_us: int, rule: AlertRule, *, is_bad: bool) -> AlertEpisode:
    """Return the fold with one more window, which is later than all before it."""
    if is_bad:
        return _fold_bad_window(run, start_us, rule)._replace(upto_us=start_us)
    # 1. What was bad for too short a time is forgotten.
    if run.phase is not Phase.FIRING:
        return run._replace(phase=Phase.OVER, bads=0, goods=0, upto_us=start_us)
    # 2. One that fires ends with enough good windows; each flap doubles how many, up to an hour of them.
    goods = run.goods + 1
    if goods < min(rule.keep_windows << run.flaps, max(rule.keep_windows, MAX_KEEP_WINDOWS)):
        return run._replace(goods=goods, upto_us=start_us)
    return run._replace(phase=Phase.OVER, bads=0, goods=0, ended_us=start_us + WINDOW_US, upto_us=start_us)


def _fold_bad_window(run: AlertEpisode, start_us: int, rule: AlertRule) -> AlertEpisode:
    since_us = run.since_us if run.bads else start_us
    run = run._replace(since_us=since_us, bads=run.bads + 1, goods=0)
    # 3. One that fires goes on.
    if run.phase is Phase.FIRING:
        return run
    # 4. It fires with enough bad windows and no good one between.
    if run.bads < rule.for_windows:
        return run._replace(phase=Phase.PENDING)
    # 5. Soon after its end that is a flap; flaps are bounded, so that shifting by them is.
    is_flap = run.ended_us != BEGINNING_US and start_us - run.ended_us <= FLAP_MEMORY_US
    flaps = min(run.flaps + 1, MAX_KEEP_WINDOWS.bit_length()) if is_flap else 0
    return run._replace(phase=Phase.FIRING, flaps=flaps)


def apply_reading(state: AlertState, start_us: int, rule: AlertRule, reading: Reading) -> AlertState:
    """Return the state with the reading of one window, new or amended."""
    # 1. What can change no more is not folded again.
    if start_us <= state.base.upto_us:
        return state
    if reading.is_bad:
        state = _with_figures(state, start_us, rule, reading)
    # 2. The same reading again changes nothing.
    if state.marks.get(start_us) is reading.is_bad:
        return state
    marks = {**state.marks, start_us: reading.is_bad}
    # 3. A window that is amended, or late, has those behind it folded again.
    if start_us <= state.run.upto_us:
        return replace(state, marks=marks, run=_fold_windows(state.base, marks, rule))
    return replace(state, marks=marks, run=fold_window(state.run, start_us, rule, is_bad=reading.is_bad))


def _with_figures(state: AlertState, start_us: int, rule: AlertRule, reading: Reading) -> AlertState:
    """Return the state with the figures of a bad window, if it is among the newest."""
    if start_us < state.worst_us:
        is_kept = start_us in state.earlier
        return replace(state, earlier={**state.earlier, start_us: reading}) if is_kept else state
    earlier = state.earlier
    if start_us > state.worst_us and state.worst.is_bad and not state.worst.amended:
        earlier = dict([*earlier.items(), (state.worst_us, state.worst)][-MAX_EARLIER:])
    return replace(state, worst=_fill_place(reading, state, rule), worst_us=start_us, earlier=earlier)


def withdraw_figures(state: AlertState, start_us: int, amended: str) -> AlertState:
    """Return the state without the figures of a window that was amended and shows nothing bad now.

    Those of the newest one before it stand instead, if any of the episode is known; else ``amended`` says what it is
    now. Where the alert stands is the matter of its readings: a window that says nothing ends nothing.
    """
    earlier = {start: reading for start, reading in state.earlier.items() if start != start_us}
    if start_us != state.worst_us:
        return replace(state, earlier=earlier) if start_us in state.earlier else state
    standing = [start for start in earlier if start >= state.run.since_us]
    if standing:
        newest_us = standing[-1]
        worst = earlier.pop(newest_us)
        return replace(state, worst=worst, worst_us=newest_us, earlier=earlier)
    worst = Reading(state.series.node, is_bad=True, threshold=state.worst.threshold, amended=amended)
    return replace(state, worst=worst)


def _fill_place(reading: Reading, state: AlertState, rule: AlertRule) -> Reading:
    """Return a reading with the place that is known of the episode: a budget burns on where a window loses nothing."""
    if rule.kind is not AlertKind.BURN_RATE or reading.note or not state.run.bads:
        return reading
    return reading._replace(note=state.worst.note, lost_ids=state.worst.lost_ids)


def settle_windows(state: AlertState, before_us: int, rule: AlertRule) -> AlertState:
    """Return the state without the readings of windows that cannot change any more; where it stands stays."""
    if not state.marks:
        return state
    starts = sorted(state.marks)
    over = [start for place, start in enumerate(starts) if start < before_us or place < len(starts) - MAX_MARKS]
    if not over:
        return state
    base = _fold_windows(state.base, {start: state.marks[start] for start in over}, rule)
    return replace(state, base=base, marks={start: state.marks[start] for start in starts[len(over) :]})


def is_expired(state: AlertState, now_us: int) -> bool:
    """Return whether nothing of the state is needed any more."""
    if state.run.phase is not Phase.OVER or state.told_as or any(state.marks.values()):
        return False
    return now_us - state.run.ended_us > FLAP_MEMORY_US


def _fold_windows(base: AlertEpisode, marks: Mapping[int, bool], rule: AlertRule) -> AlertEpisode:
    run = base
    for start_us in sorted(marks):
        run = fold_window(run, start_us, rule, is_bad=marks[start_us])
    return run
