"""``hopwatch store``: migrate the store, and delete old results."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from sqlalchemy import Engine

from hopwatch.alerts.storage import retention as alerts_retention
from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.monitor.clock import Clock, SystemClock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.settings import durations
from hopwatch.monitor.store import dialect, retention, schema

command = typer.Typer(help="Migrate and prune the store.", no_args_is_help=True)


@command.callback()
def _store() -> None:
    """Migrate and prune the store."""


@command.command()
def migrate(config: Config = DEFAULT_CONFIG) -> None:
    """Migrate the store to the schema version of this program.

    In one transaction, while no monitor runs. A missing store is created.
    """
    url = load_settings(config).store.url
    with dialect.translate_errors(url), dialect.lock_store(url):
        found, now = schema.migrate_store(dialect.create_engine(url))
    name = dialect.redact_url(url)
    if found == now:
        told = f"the store {name} has schema version {now} already"
    else:
        told = f"the store {name} is at schema version {now}, {f'before at {found}' if found else 'newly made'}"
    console.stderr().print(told)


@command.command()
def prune(
    keep: Annotated[str, typer.Option("--keep", help="How long windows are kept: 30d, 12h.")],
    config: Config = DEFAULT_CONFIG,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Delete old windows, records set aside and notifications.

    A monitor may run meanwhile. Whole hours go, and none of which a window can still change. Their hours and days stay,
    as report --by shows them.
    """
    keep_us = _parse_keep_us(keep)
    chosen = load_settings(config, has_alerts=True)
    url = chosen.store.url
    schema.require_store(url)
    engine, clock = dialect.create_engine(url), SystemClock()
    before_us = retention.cutoff_us(clock.now_us(), keep_us)
    if dry_run:
        gone, notifications = retention.count_due(engine, before_us), alerts_retention.count_prunable(engine, before_us)
    else:
        gone = _prune_windows(engine, before_us, clock)
        # Budgets are summed over more than is kept of windows.
        counts_before_us = min(before_us, clock.now_us() - chosen.alerts.longest_budget_us)
        notifications = sum(alerts_retention.prune_alerts(engine, before_us, counts_before_us, clock))
    if as_json:
        told = {"before": format_iso(before_us), "dry_run": dry_run} | gone._asdict() | {"notifications": notifications}
        console.emit_json(told)
    else:
        what = "would be deleted" if dry_run else "deleted"
        counts = f"{gone.windows:,} windows, {gone.set_aside:,} records set aside, {notifications:,} notifications"
        console.stdout().print(f"{what}: {counts} from before {format_iso(before_us)}")


def _prune_windows(engine: Engine, before_us: int, clock: Clock) -> retention.PruneStep:
    words = console.stderr()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    windows = set_aside = 0
    with Progress(*columns, console=words, transient=True, disable=not words.is_terminal) as progress:
        task = progress.add_task("pruning")
        for step in retention.prune(engine, before_us, clock):
            windows, set_aside = windows + step.windows, set_aside + step.set_aside
            progress.update(task, description=f"pruned {windows:,} windows, {set_aside:,} records set aside")
    return retention.PruneStep(windows, set_aside)


def _parse_keep_us(keep: str) -> int:
    try:
        return durations.parse_positive_us(keep)
    except ValueError:
        form = "a whole number over 0 and its unit, h or d, such as 30d, at most 3650d"
        days = f"; for days write {keep}d" if keep.isdecimal() and keep.isascii() and int(keep[:9]) else ""
        raise ConfigurationError(f"--keep is {form}; got {keep or 'nothing':.80}{days}") from None
