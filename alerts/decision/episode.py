"""Alert state machine: folds the readings of one rule at one place, in window order, into pending, firing or over.

It folds over windows, not over time or batches: the result is the same whether windows come in one batch or in many.
Readings of windows that can still be amended are kept, so that an amendment repeats the fold.
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
"""An alert that fires again within this time after its end is flapping."""

MAX_KEEP_WINDOWS: Final = 60
"""Most good windows that end a flapping alert, unless the rule itself asks for more."""

MAX_MARKS: Final = 1_500
"""Most windows whose readings a place keeps; a day has fewer."""

MAX_EARLIER: Final = 2
"""Number of bad windows before the newest whose figures are kept, in case the newest is amended."""

BEGINNING_US: Final = -(2**63)


class Phase(StrEnum):
    """Phase of an alert: bad for too short a time yet, firing, or over."""

    PENDING = "pending"
    FIRING = "firing"
    OVER = "over"


class AlertSeries(NamedTuple):
    """Identity of an alert: rule, severity, stream and node; ``node`` is empty for the stream as a whole."""

    rule: str
    severity: str
    stream: str
    node: str


class AlertEpisode(NamedTuple):
    """Fold of all readings up to a window.

    ``bads`` counts those of this episode, ``goods`` those since the last bad one, ``flaps`` how often the
    alert fired again soon after its end, which was at ``ended_us``.
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
    """State of one alert.

    ``base`` is the fold of the windows that can no longer change, ``marks`` says for later ones whether they are
    bad, ``run`` is the fold of all. ``worst`` is the newest bad reading that is still valid, of the window
    ``worst_us``; ``earlier`` are some before it, by window. ``incident_key`` is that of the incident that it belongs
    to, ``covered_at_us`` the last time at which another alert covered it.
    """

    series: AlertSeries
    base: AlertEpisode = NEW_EPISODE
    marks: Mapping[int, bool] = field(default_factory=dict)
    run: AlertEpisode = NEW_EPISODE
    worst: Reading = NO_READING
    worst_us: int = BEGINNING_US
    incident_key: str = ""
    covered_at_us: int = BEGINNING_US
    earlier: Mapping[int, Reading] = field(default_factory=dict)


def fold_window(run: AlertEpisode, start_us: int, rule: AlertRule, *, is_bad: bool) -> AlertEpisode:
    """Fold one more window, which is later than all before it."""
    if is_bad:
        return _fold_bad_window(run, start_us, rule)._replace(upto_us=start_us)
    # 1. An alert that was bad for too short a time is dropped.
    if run.phase is not Phase.FIRING:
        return run._replace(phase=Phase.OVER, bads=0, goods=0, upto_us=start_us)
    # 2. A firing alert ends after enough good windows; each flap doubles their number, up to an hour.
    goods = run.goods + 1
    if goods < min(rule.keep_windows << run.flaps, max(rule.keep_windows, MAX_KEEP_WINDOWS)):
        return run._replace(goods=goods, upto_us=start_us)
    return run._replace(phase=Phase.OVER, bads=0, goods=0, ended_us=start_us + WINDOW_US, upto_us=start_us)


def _fold_bad_window(run: AlertEpisode, start_us: int, rule: AlertRule) -> AlertEpisode:
    since_us = run.since_us if run.bads else start_us
    run = run._replace(since_us=since_us, bads=run.bads + 1, goods=0)
    # 3. A firing alert stays firing.
    if run.phase is Phase.FIRING:
        return run
    # 4. An alert fires after enough bad windows with no good one between.
    if run.bads < rule.for_windows:
        return run._replace(phase=Phase.PENDING)
    # 5. Firing soon after the last end is a flap; flaps are bounded, so that the shift above is.
    is_flap = run.ended_us != BEGINNING_US and start_us - run.ended_us <= FLAP_MEMORY_US
    flaps = min(run.flaps + 1, MAX_KEEP_WINDOWS.bit_length()) if is_flap else 0
    return run._replace(phase=Phase.FIRING, flaps=flaps)


def apply_reading(state: AlertState, start_us: int, rule: AlertRule, reading: Reading) -> AlertState:
    """Apply the reading of one window, new or amended, to a state."""
    # 1. A window that can no longer change is not folded again.
    if start_us <= state.base.upto_us:
        return state
    if reading.is_bad:
        state = _with_figures(state, start_us, rule, reading)
    # 2. The same reading again changes nothing.
    if state.marks.get(start_us) is reading.is_bad:
        return state
    marks = {**state.marks, start_us: reading.is_bad}
    # 3. After an amended or late window, the windows behind it are folded again.
    if start_us <= state.run.upto_us:
        return replace(state, marks=marks, run=_fold_windows(state.base, marks, rule))
    return replace(state, marks=marks, run=fold_window(state.run, start_us, rule, is_bad=reading.is_bad))


def _with_figures(state: AlertState, start_us: int, rule: AlertRule, reading: Reading) -> AlertState:
    """Keep the figures of a bad window, if it is among the newest."""
    if start_us < state.worst_us:
        is_kept = start_us in state.earlier
        return replace(state, earlier={**state.earlier, start_us: reading}) if is_kept else state
    earlier = state.earlier
    if start_us > state.worst_us and state.worst.is_bad and not state.worst.amended:
        earlier = dict([*earlier.items(), (state.worst_us, state.worst)][-MAX_EARLIER:])
    return replace(state, worst=_fill_place(reading, state, rule), worst_us=start_us, earlier=earlier)


def withdraw_figures(state: AlertState, start_us: int, amended: str) -> AlertState:
    """Withdraw the figures of a window that is no longer bad after an amendment.

    The figures of the newest bad window before it take their place, if the episode has one; otherwise ``amended`` says
    what the window is now. The phase of the alert depends on its readings alone: a window without one ends nothing.
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
    """Fill in the place that is known of the episode: a budget can burn on while a window loses nothing."""
    if rule.kind is not AlertKind.BURN_RATE or reading.note or not state.run.bads:
        return reading
    return reading._replace(note=state.worst.note, lost_ids=state.worst.lost_ids)


def settle_windows(state: AlertState, before_us: int, rule: AlertRule) -> AlertState:
    """Drop the readings of windows that can no longer change; the phase stays the same."""
    if not state.marks:
        return state
    starts = sorted(state.marks)
    over = [start for place, start in enumerate(starts) if start < before_us or place < len(starts) - MAX_MARKS]
    if not over:
        return state
    base = _fold_windows(state.base, {start: state.marks[start] for start in over}, rule)
    return replace(state, base=base, marks={start: state.marks[start] for start in starts[len(over) :]})


def is_expired(state: AlertState, now_us: int) -> bool:
    """Return whether the state is no longer needed."""
    if state.run.phase is not Phase.OVER or state.incident_key or any(state.marks.values()):
        return False
    return now_us - state.run.ended_us > FLAP_MEMORY_US


def _fold_windows(base: AlertEpisode, marks: Mapping[int, bool], rule: AlertRule) -> AlertEpisode:
    run = base
    for start_us in sorted(marks):
        run = fold_window(run, start_us, rule, is_bad=marks[start_us])
    return run
