"""Cost of a live monitor: duration of triggers with many live windows, and delay until a window is final."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench import busy_triggers
from bench.contestant import Json, run
from bench.speed import Progress


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Something that takes time: each measured, s, and the most it should take."""

    what: str
    took_s: tuple[float, ...]
    goal_s: float | None = None


def measure_triggers(scratch: Path, tell: Progress, streams: int) -> list[TimeSpan]:
    """Return what triggers cost with so many streams; each result was checked.

    Raises:
        ContestantError: the monitor failed, or found what is not there.
    """
    windows = streams * busy_triggers.WINDOWS
    tell(f"triggers with {windows:,} live windows")
    return _triggers(run("bench.busy_triggers:live", scratch, streams=streams).result, windows)


def measure(scratch: Path, tell: Progress) -> list[TimeSpan]:
    """Return what was measured; each result was checked.

    Raises:
        ContestantError: the monitor failed, or found what is not there.
    """
    triggers = measure_triggers(scratch, tell, busy_triggers.STREAMS)
    tell("windows that become final, on the real clock")
    late = run("bench.finality:measure_finality", scratch).result
    tell("the same beside a node with 99 % of all observations")
    hogged = run("bench.finality:measure_finality", scratch, has_hog=True).result
    beside = "the same, while one node of another stream has 99 % of all observations"
    return [*triggers, _late(late), TimeSpan(beside, tuple(hogged["late_s"]), 15.0)]


def _triggers(told: Json, windows: int) -> list[TimeSpan]:
    spans = []
    for name, what, goal_s in (
        ("busy_s", f"a trigger that brings {busy_triggers.MESSAGES} messages to each of {windows} live windows", 1.5),
        (
            "newest_s",
            f"a trigger that brings {busy_triggers.MESSAGES} to the newest of each stream, {windows} are live",
            1.5,
        ),
        ("pulse_s", f"a trigger that brings the pulse alone, {windows} live windows", 1.5),
    ):
        took_s, behind_s = zip(*told[name], strict=True)
        spans += [TimeSpan(what, took_s, goal_s), TimeSpan("… and the batch without data behind it", behind_s)]
    return [*spans, TimeSpan("an idle trigger", tuple(told["idle_s"]), 0.5)]


def _late(told: Json) -> TimeSpan:
    every = f"a trigger every {told['trigger_s']:g} s, a pulse every {told['pulse_s']:g} s"
    return TimeSpan(f"FINAL in the store after transit and settle; {every}", tuple(told["late_s"]), 15.0)
