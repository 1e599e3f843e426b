"""A monitor that is started, killed and started again, until it has judged all there is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from servers.process import Process, ServerError, until
from tests.real.program_folder import Workplace

PATIENCE_S = 480.0
DYING = "tests.e2e.dying_monitor"
"""The program that dies between the store's commit and Spark's."""
Report = dict[str, Any]


def minute_of(moment_s: float) -> str:
    """Return the window that a moment is in, as reports name it."""
    return datetime.fromtimestamp(moment_s // 60 * 60, UTC).strftime("%Y-%m-%dT%H:%M:00Z")


class Monitor:
    """``hopwatch run`` in a workplace."""

    def __init__(self, work: Workplace) -> None:
        """Take the place; nothing runs yet."""
        self.work = work
        self.process: Process | None = None

    def start(self, *flags: str, program: str = "hopwatch") -> Monitor:
        """Start it, or a program that stands for it."""
        self.process = self.work.start("run", *flags, program=program)
        return self

    def kill(self) -> None:
        """Kill driver, Java and workers without a word."""
        assert self.process is not None
        self.process.kill()

    def stop(self) -> None:
        """Ask it to end, as an operator would."""
        assert self.process is not None
        self.process.stop(60)

    def until(self, holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until something holds, while the monitor runs."""
        assert self.process is not None
        process = self.process

        def is_so() -> bool:
            assert process.is_alive, self._last_words()
            return holds()

        try:
            until(is_so, what, patience_s)
        except ServerError as error:
            pytest.fail(f"{error}: {self._last_words()}")

    def until_judged(self, last: str) -> Report:
        """Wait until the last window of interest and all before it are final, nothing in flight; return the report."""
        reports: list[Report] = []

        def is_judged() -> bool:
            reports.append(self.work.reported())
            windows = [window for stream in reports[-1]["streams"] for window in stream["windows"]]
            early = [window for window in windows if window["window_start"] <= last]
            is_there = any(window["window_start"] == last for window in early)
            return is_there and all(w["status"] in {"FINAL", "AMENDED"} and not w["in_flight"] for w in early)

        self.until(is_judged, f"the judgement of {last}")
        return reports[-1]

    def _last_words(self) -> str:
        log = self.work.folder / "work" / "spark.log"
        spark = log.read_text("utf-8", errors="replace")[-8_000:] if log.exists() else ""
        return f"{self.work.words()[-2_000:]}\nSpark's log ends so:\n{spark}"


def windows_of(report: Report, stream: str = "orders") -> list[Report]:
    """Return the windows of a stream."""
    return [window for one in report["streams"] if one["stream"] == stream for window in one["windows"]]


def lost_at(report: Report, node: str) -> set[str]:
    """Return the ids that are named as lost at a node."""
    return {
        message_id
        for window in windows_of(report)
        for one in window["nodes"]
        if one["node"] == node
        for message_id in one["lost_ids"]
    }


def differences(one: object, other: object, place: str = "") -> list[str]:
    """Return where two reports differ, cell by cell."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*one, *(key for key in other if key not in one)]
        return [line for key in keys for line in differences(one.get(key), other.get(key), f"{place}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for at, (left, right) in pairs for line in differences(left, right, f"{place}[{at}]")]
    return [] if one == other else [f"{place}: {one} is not {other}"]
