"""Check of the self-test: whether what was injected was measured."""

from __future__ import annotations

from dataclasses import replace

from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.cli.checks.stores import store_error_finding
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.selftest.summary import SUMMARY_US, describe_overdue, describe_problem, describe_summary
from hopwatch.monitor.store import dialect, instances, schema, selftest
from hopwatch.monitor.texts.read_progress import iso_second

CHECK = "self-test"
ADVICE = "docs/runbooks/selftest.md says what it may mean, and what to do"


def check_selftest(url: str, now_us: int) -> Finding:
    """Return the outcome of the last hour, the newest problem first."""
    engine = dialect.create_engine(url)
    try:
        if not schema.has_store(url):
            return Finding(CHECK, Level.NOTE, "no monitor has written here yet", "start hopwatch run")
        with schema.open_snapshot(engine) as connection:
            summary = selftest.read_summary(connection, now_us - SUMMARY_US)
            is_stopped = instances.read_progress(connection).stopped_us is not None
    except StoreError as error:
        return replace(store_error_finding(error), check=CHECK)
    finally:
        engine.dispose()
    if not is_stopped and (late := describe_overdue(summary, now_us, iso_second)):
        return Finding(CHECK, Level.FAIL, late, ADVICE)
    if summary.problems:
        told = f"{describe_summary(summary)}; {describe_problem(summary.problems[0], iso_second)}"
        return Finding(CHECK, Level.FAIL, told, ADVICE)
    return Finding(CHECK, Level.OK if summary.minutes else Level.NOTE, describe_summary(summary))
