"""Tests of what is asked of the last span of the data: which windows it takes, and how they are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Engine, event

from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel.tally import empty_tally
from hopwatch.monitor.kernel.verdict import WindowStage, conclude_window
from hopwatch.monitor.results import Status
from hopwatch.monitor.store import recent_problems, schema
from tests.support.conclusions import NO_BOOKS, PATHWAY, build_conclusion, write_conclusions
from tests.support.spool import at_us

SPAN_US: Final = 3_600_000_000


def made(stream: str, minute: int, *, known: int = 1, dropped: int = 0, status: Status = Status.FINAL) -> Conclusion:
    """Return a window; its first node has dropped so many observations."""
    result = conclude_window(PATHWAY, WindowStage(stream, at_us(60 * minute), status), empty_tally(PATHWAY), NO_BOOKS)
    first, *others = result.nodes
    return build_conclusion(replace(result, known=known, nodes=(replace(first, dropped=dropped), *others)))


def dropped(found: recent_problems.RecentProblems) -> dict[str, int]:
    """Return the drops of the first node by stream."""
    return {one.stream: one.dropped for one in found.nodes if one.node == PATHWAY.nodes[0]}


def test_the_span_of_each_stream_ends_at_its_own_newest_final_window(engine: Engine) -> None:
    """One that is hours behind is looked at as well; what is older, or not final yet, counts nowhere."""
    windows = [made("ahead", 0, dropped=1), made("ahead", 60, dropped=2), made("ahead", 61, dropped=4)]
    windows += [made("behind", -600, dropped=8), made("behind", -500, dropped=16), made("other", 0, dropped=32)]
    write_conclusions(engine, *windows, made("ahead", 200, dropped=64, status=Status.OPEN))
    with schema.open_snapshot(engine) as connection:
        found = recent_problems.read_recent_problems(connection, ["behind", "ahead", "without"], SPAN_US)
    assert dropped(found) == {"ahead": 6, "behind": 16}
    assert [one.node for one in found.nodes] == [*PATHWAY.nodes] * 2


def test_a_stream_is_empty_if_no_window_of_the_span_has_a_message(engine: Engine) -> None:
    """One that has no window at all is none."""
    write_conclusions(engine, made("full", 0, known=0), made("full", 1), made("empty", -100), made("empty", 0, known=0))
    with schema.open_snapshot(engine) as connection:
        assert recent_problems.read_recent_problems(connection, ["without", "full", "empty"], SPAN_US).empty == (
            "empty",
        )


def test_windows_are_found_by_their_key_however_many_there_are(engine: Engine) -> None:
    """A year of them must not be read for the last hour: no table of windows is gone through, nor asked a row."""
    write_conclusions(engine, made("orders", 0))
    asked: list[tuple[str, Any]] = []

    def note(_: Connection, __: object, statement: str, parameters: Any, *___: object) -> None:  # noqa: ANN401 - the driver's
        if "FROM windows" in statement:
            asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    with schema.open_snapshot(engine) as connection:
        recent_problems.read_recent_problems(connection, ["orders"], SPAN_US)
    event.remove(engine, "before_cursor_execute", note)
    assert len(asked) == 3
    assert not any("max(windows" in statement for statement, _ in asked)
    if engine.dialect.name == "sqlite":
        with engine.begin() as connection:
            plans = [
                row[3] for one in asked for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {one[0]}", one[1])
            ]
        looked = [plan for plan in plans if "windows" in plan]
        assert len(looked) == 4
        assert all(plan.startswith("SEARCH") for plan in looked)
        assert not any("CORRELATED" in plan for plan in plans)
