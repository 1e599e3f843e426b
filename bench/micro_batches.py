"""The contestants of :mod:`bench.alert_cost`: micro-batches that end with a decision about alerts; spans are in ms.

The functions are called in a process of their own, see :mod:`bench.contestant`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, Engine, func, select

from bench import windows
from bench.contestant import Json
from bench.truth import WrongResultError
from bench.windows import MESSAGES, START_US, Fleet
from hopwatch.alerts.batch_hook import AlertHook
from hopwatch.alerts.events import Notification, Severity
from hopwatch.alerts.storage.alert_state import StoredPastWindows
from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.store import dialect, schema, tables, writer
from hopwatch.probes.contract.limits import WINDOW_US

WELL: Final = "all is well"
SCARRED: Final = "all is well, each stream lost a message 20 minutes ago"
STRUCK: Final = "every node breaks"
BROKEN: Final = "every node has been broken for an hour"

ROUNDS: Final = 7
AGO: Final = 20
OBJECTIVE: Final = "loss"
CHANNEL: Final = "pager"
_ROW: Final = "INSERT INTO objective_minutes (stream, objective, window_start_us, total, bad) VALUES (?, ?, ?, ?, ?)"


class BatchSpans(NamedTuple):
    """One micro-batch, ms."""

    write_ms: float
    follow_ms: float
    commit_ms: float


def decide(folder: Path, streams: int, nodes: int, history: int, broken: int = 60) -> Json:
    """Run micro-batches: all is well, all is well behind a lost message, all nodes break and stay broken."""
    play = Play(engine_at(folder), Fleet(streams, nodes))
    play.fill_budgets(history)
    told = {WELL: play.summarise_rounds([play.batch(play.well) for _ in range(ROUNDS)], pages=0)}
    play.lose_messages()
    told[SCARRED] = play.summarise_rounds([play.batch(play.well) for _ in range(ROUNDS)], pages=0)
    told[STRUCK] = play.summarise_rounds([play.batch(play.lossy)], pages=1)
    play.catch_up(play.lossy, broken - 1 - ROUNDS)
    told[BROKEN] = play.summarise_rounds([play.batch(play.lossy) for _ in range(ROUNDS)], pages=1)
    return told


def sums(folder: Path, streams: int, history: int, spans: Mapping[str, int]) -> Json:
    """Sum the minutes of each stream over each span, every minute with something bad."""
    engine = engine_at(folder)
    names = list(Fleet(streams, 1).paths)
    with engine.execution_options(writes=True).begin() as connection:
        _remember(connection, names, history, bad=1)
    found = {}
    for span, minutes in spans.items():
        took_ms = []
        for name in names:
            with engine.begin() as connection:
                began_s = time.perf_counter()
                counts = StoredPastWindows(connection).sum_counts(
                    name, OBJECTIVE, START_US - minutes * WINDOW_US, START_US
                )
                took_ms.append((time.perf_counter() - began_s) * 1e3)
            if counts.bad != minutes:
                raise WrongResultError(f"{minutes} minutes with a bad message each summed to {counts.bad}")
        found[span] = median(took_ms)
    return found


class Play:
    """Streams, their windows and rules, and the store; time goes by a window a micro-batch."""

    def __init__(self, engine: Engine, fleet: Fleet) -> None:
        """Take an empty store."""
        dice = np.random.default_rng(1)
        self._engine: Final = engine
        self._rules: Final = fleet.stream_rules()
        self._alerting: Final = AlertHook(fleet.alert_rules(), _route)
        self._start_us = START_US
        made = [
            [
                windows.conclusion(
                    windows.window(name, nodes, START_US, dice, is_lossy=is_lossy), self._rules[name], dice
                )
                for name, nodes in fleet.paths.items()
            ]
            for is_lossy in (False, True)
        ]
        self.well, self.lossy = made

    def fill_budgets(self, minutes: int) -> None:
        """Fill the budgets with minutes in which nothing was lost."""
        with self._engine.execution_options(writes=True).begin() as connection:
            _remember(connection, list(self._rules), minutes, bad=0)

    def lose_messages(self) -> None:
        """Let one message of each stream be lost some minutes ago."""
        column = tables.objective_minutes.c
        struck = column.window_start_us == self._start_us - AGO * WINDOW_US
        with self._engine.execution_options(writes=True).begin() as connection:
            connection.execute(tables.objective_minutes.update().where(struck).values(bad=1))

    def batch(self, conclusions: list[Conclusion]) -> BatchSpans:
        """Run the next micro-batch, in which these windows are final."""
        came = [windows.move_conclusion(one, self._start_us) for one in conclusions]
        watermark_us = self._final_at_us(self._start_us)
        listed = dict.fromkeys(self._rules, (START_US, self._start_us))
        marks_s = [time.perf_counter()]
        with self._engine.execution_options(writes=True).begin() as connection:
            writer.write_changes(connection, writer.Changes(watermark_us, streams=listed))
            writer.write_conclusions(connection, came, watermark_us)
            marks_s.append(time.perf_counter())
            noted = [note for one in came if (note := self._alerting.note(one)) is not None]
            self._alerting.follow(connection, noted, watermark_us)
            marks_s.append(time.perf_counter())
        marks_s.append(time.perf_counter())
        self._start_us += WINDOW_US
        return BatchSpans(*(np.diff(marks_s) * 1e3).tolist())

    def catch_up(self, conclusions: list[Conclusion], minutes: int) -> None:
        """Decide about so many minutes of these windows at once, as behind a backlog: it comes to the same."""
        starts_us = [self._start_us + minute * WINDOW_US for minute in range(minutes)]
        notes = (
            self._alerting.note(windows.move_conclusion(one, start_us)) for start_us in starts_us for one in conclusions
        )
        noted = [note for note in notes if note is not None]
        with self._engine.execution_options(writes=True).begin() as connection:
            self._alerting.follow(connection, noted, self._final_at_us(starts_us[-1]))
        self._start_us += minutes * WINDOW_US

    def summarise_rounds(self, spans: list[BatchSpans], pages: int) -> Json:
        """Return the median of some micro-batches, by the end of which so many pages have to be told.

        Raises:
            WrongResultError: there are more of them or fewer.
        """
        if (found := self._pages()) != pages:
            raise WrongResultError(f"{found} pages were told of {len(self._rules)} streams, not {pages}")
        middle = BatchSpans(*(median(column) for column in zip(*spans, strict=True)))
        return {**middle._asdict(), "pages": found}

    def _final_at_us(self, start_us: int) -> int:
        """Return when a window of any of the streams is final."""
        return next(iter(self._rules.values())).terms.final_at_us(start_us)

    def _pages(self) -> int:
        column = tables.alert_history.c
        is_page = column.key.like(f"%/{Severity.PAGE}/%") & (column.event == "firing")
        with self._engine.begin() as connection:
            return int(connection.execute(select(func.count(column.key.distinct())).where(is_page)).scalar_one())


def _route(notification: Notification) -> tuple[str, ...]:
    """Return the one channel for whatever wakes somebody."""
    return (CHANNEL,) if notification.severity is Severity.PAGE else ()


def _remember(connection: Connection, names: list[str], minutes: int, bad: int) -> None:
    for name in names:
        starts_us = range(START_US - minutes * WINDOW_US, START_US, WINDOW_US)
        connection.exec_driver_sql(_ROW, [(name, OBJECTIVE, start_us, MESSAGES, bad) for start_us in starts_us])


def engine_at(folder: Path) -> Engine:
    """Return an empty store in a folder."""
    engine = dialect.create_engine(f"sqlite:///{folder / 'store.db'}")
    schema.prepare_store(engine)
    return engine
