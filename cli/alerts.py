"""``hopwatch alerts``: list, acknowledge and silence incidents, show the notification history, test channels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from hopwatch.alerts import budget_texts, cli_json, rule_config, suggestion_json
from hopwatch.alerts.channels import routing
from hopwatch.alerts.channels.channel import Channel
from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.delivery import trial
from hopwatch.alerts.events import Severity, unqualify_key
from hopwatch.alerts.storage.acknowledgements import acknowledge_incident, unacknowledge_incident
from hopwatch.alerts.storage.budget_queries import query_budgets
from hopwatch.alerts.storage.history import Acknowledgement
from hopwatch.alerts.storage.objectives import list_objectives
from hopwatch.alerts.storage.silences import EVERYTHING, Silence, add_silence, end_silence
from hopwatch.alerts.suggestions import DAY_US, suggest_rules
from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, AsJson, Config, load_settings, parse_span_us, read_user_name
from hopwatch.cli.report import FINDING_EXIT_CODE
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError, DependencyError
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.texts.moments import parse_moment_us

command = typer.Typer(help="List, acknowledge and silence alerts, and test channels.", no_args_is_help=True)


@command.callback()
def _alerts() -> None:
    """List, acknowledge and silence alerts, and test channels."""


@command.command("list")
def list_(config: Config = DEFAULT_CONFIG, *, as_json: AsJson = False) -> None:
    """Show the open incidents.

    And alerts that are pending, and the heartbeats.
    """
    told = cli_json.query_open_json(_open_store(config), SystemClock().now_us())
    if as_json:
        console.emit_json(told)
        return
    _print_incidents(told["incidents"])
    for one in told["pending"]:
        where = " ".join(part for part in (one["stream"], one["node"]) if part)
        _print_line(f"pending: {one['rule']} ({one['severity']}) {where}, since {one['since']}")
    for one in told["heartbeats"]:
        _print_line(f"heartbeat: {one['key']}, {one['summary']}")
    for one in told["silences"]:
        _print_line(_describe_silence(one))


@command.command()
def ack(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The incident, as alerts list shows it.")],
    config: Config = DEFAULT_CONFIG,
    by: Annotated[str, typer.Option("--by", help="Who acknowledges it; the current user by default.")] = "",
    note: Annotated[str, typer.Option("--note", help="What others should know.")] = "",
    *,
    as_json: AsJson = False,
) -> None:
    """Acknowledge an incident until it ends. Exit 1 when somebody else was first."""
    who = by or read_user_name()
    for text in (who, note):
        if not text.isprintable():
            raise ConfigurationError(f"--by and --note are one line of printable text, got {text!r:.80}")
    chosen = load_settings(config, has_alerts=True)
    key = unqualify_key(key, chosen.alerts.installation)
    asked = Acknowledgement(who, SystemClock().now_us(), note)
    first = acknowledge_incident(_open_engine(chosen.store.url), key, asked)
    if as_json:
        console.emit_json({"key": key} | cli_json.acknowledgement_to_json(first))
    elif first is asked:
        console.stdout().print(f"{key} is acknowledged by {who}")
    else:
        console.stdout().print(
            f"{key} was acknowledged by {first.by} at {format_iso(first.at_us)} already{_format_note(first.note)}"
        )
    if (first.by, first.note) != (who, note):
        raise typer.Exit(FINDING_EXIT_CODE)


@command.command()
def unack(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The incident, as alerts list shows it.")],
    config: Config = DEFAULT_CONFIG,
    *,
    as_json: AsJson = False,
) -> None:
    """Take back the acknowledgement of an incident."""
    chosen = load_settings(config, has_alerts=True)
    key = unqualify_key(key, chosen.alerts.installation)
    found = unacknowledge_incident(_open_engine(chosen.store.url), key)
    if as_json:
        console.emit_json({"key": key, "was": cli_json.acknowledgement_to_json(found)})
    else:
        console.stdout().print(f"{key} is not acknowledged any more; it was by {found.by}{_format_note(found.note)}")


@command.command("silence")
def add(  # noqa: PLR0913, PLR0917 - one a flag
    target: Annotated[
        str, typer.Argument(metavar="KEY|STREAM", help="An incident as alerts list shows it, a stream, or '*' for all.")
    ],
    span: Annotated[str, typer.Option("--for", metavar="SPAN", help="How long: 30m, 2h, 7d.")],
    why: Annotated[str, typer.Option("--why", help="The reason, for others.")],
    config: Config = DEFAULT_CONFIG,
    from_time: Annotated[
        str | None,
        typer.Option("--from", help="Not from now on, but from this moment, ISO 8601: a maintenance window."),
    ] = None,
    by: Annotated[str, typer.Option("--by", help="Who asks for it; the current user by default.")] = "",
    *,
    as_json: AsJson = False,
) -> None:
    """Hold back notifications of an incident or a stream for a while.

    What still fires at the end of the silence is notified then; what has ended meanwhile is not. Heartbeats go on, and
    so does what was notified before.
    """
    who = by or read_user_name()
    if not (why.strip() and why.isprintable() and who.isprintable()):
        raise ConfigurationError(f"--why and --by are one line of printable text, got {why!r:.80} and {who!r:.80}")
    chosen = load_settings(config, has_alerts=True)
    target, now_us = unqualify_key(target, chosen.alerts.installation), SystemClock().now_us()
    from_us = now_us if from_time is None else parse_moment_us("--from", from_time)
    assert from_us is not None  # noqa: S101 - a text was given
    asked = Silence(target, from_us, from_us + parse_span_us("--for", span), who, why.strip())
    if asked.until_us <= now_us:
        raise ConfigurationError(f"this silence would be over since {format_iso(asked.until_us)}: let it end later")
    engine = _open_engine(chosen.store.url)
    cli_json.check_target(engine, target, chosen.streams)
    made = cli_json.silence_to_json(replace(asked, number=add_silence(engine, asked)), now_us)
    if as_json:
        console.emit_json(made)
    else:
        _print_line(_describe_silence(made))


@command.command()
def unsilence(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="The silence, as alerts list shows it.")],
    config: Config = DEFAULT_CONFIG,
    *,
    as_json: AsJson = False,
) -> None:
    """End a silence now."""
    if not end_silence(_open_store(config), number, SystemClock().now_us()):
        raise ConfigurationError(f"there is no silence {number} that lasts: hopwatch alerts list shows them")
    if as_json:
        console.emit_json({"number": number})
    else:
        console.stdout().print(f"silence {number} is over")


@command.command()
def history(
    config: Config = DEFAULT_CONFIG,
    key: Annotated[str | None, typer.Option("--key", help="Only this incident.")] = None,
    from_time: Annotated[str | None, typer.Option("--from", help="From this moment on, ISO 8601.")] = None,
    most: Annotated[int, typer.Option("--most", min=1, max=cli_json.MAX_SHOWN, help="At most so many.")] = 50,
    *,
    as_json: AsJson = False,
) -> None:
    """Show the notification history, the newest first.

    And the delivery to each channel.
    """
    chosen = load_settings(config, has_alerts=True)
    own = None if key is None else unqualify_key(key, chosen.alerts.installation)
    told = cli_json.query_history_json(_open_engine(chosen.store.url), own, parse_moment_us("--from", from_time), most)
    if as_json:
        console.emit_json({"notifications": told})
        return
    if not told:
        _print_line("no notification")
    for one in told:
        _print_line(f"{one['at']}  {one['event']}  {one['key']}")
        _print_line(f"    {one['summary']}")
        for channel in one["channels"]:
            _print_line(f"    {_describe_delivery(channel)}")


@command.command()
def suggest(
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str | None, typer.Option("--stream", help="Only this stream.")] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="From so many days.")] = 28,
    *,
    as_json: AsJson = False,
) -> None:
    """Suggest thresholds of loss and lag, as TOML to paste.

    Of each node and stream the lowest that would have fired once in four weeks at most, and what it would have caught.
    """
    chosen = load_settings(config, has_alerts=True)
    chosen.check_stream(stream)
    to_us = SystemClock().now_us()
    engine, rules = _open_engine(chosen.store.url), rule_config.build_rules(chosen)
    names = [stream] if stream is not None else sorted(chosen.streams)
    with schema.open_snapshot(engine) as connection:
        found = [one for name in names for one in suggest_rules(connection, rules, name, to_us - days * DAY_US, to_us)]
    if as_json:
        console.emit_json({"suggestions": [suggestion_json.suggestion_to_json(one) for one in found]})
        return
    if not found:
        _print_line("# the store has no final window of these streams to learn from")
    for one in found:
        for line in suggestion_json.format_toml(one):
            _print_line(line)


@command.command()
def budgets(
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str | None, typer.Option("--stream", help="Only this stream; all without it.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show what is left of each error budget.

    Of 30 days, by the objectives of the rules of burn rates; and for how long it lasts at the rate of the last day.
    """
    chosen = load_settings(config, has_alerts=True)
    chosen.check_stream(stream)
    engine, now_us = _open_engine(chosen.store.url), SystemClock().now_us()
    objectives = list_objectives(rule_config.build_rules(chosen).rules)
    names = [stream] if stream is not None else sorted(chosen.streams)
    with schema.open_snapshot(engine) as connection:
        found = [one for name in names for one in query_budgets(connection, objectives, name, now_us)]
    if as_json:
        console.emit_json({"budgets": [budget_texts.budget_to_json(one) for one in found]})
        return
    if not found:
        _print_line("no rule of a burn rate is enabled")
    for one in found:
        _print_line(budget_texts.describe_budget(one))


@command.command("test")
def send_test(
    config: Config = DEFAULT_CONFIG,
    channel: Annotated[str | None, typer.Option("--channel", help="Only this channel; all without it.")] = None,
    severity: Annotated[Severity, typer.Option("--severity", help="How urgent the test is.")] = Severity.PAGE,
    hold: Annotated[
        float, typer.Option("--hold", metavar="SECONDS", min=0, max=600, help="How long the test lasts before its end.")
    ] = 0.0,
    *,
    as_json: AsJson = False,
) -> None:
    """Send a test through the channels, its beginning and its end.

    Straight, not through the store, so that it works beside a monitor and without one; through all channels, whatever
    severities and streams they are for. An Alertmanager tells its receivers only of what outlasts its group_wait: hold
    the test for longer.
    """
    chosen = load_settings(config, has_alerts=True)
    people = routing.open_routing(chosen)
    try:
        results = trial.send_trial(_select_channels(people, channel), severity, SystemClock(), hold)
    finally:
        people.close()
    if as_json:
        console.emit_json({"channels": [result.to_json() for result in results]})
    else:
        for result in results:
            told = f"failed: {result.why}" if result.why else "taken"
            console.stdout().print(f"{result.channel}: {result.event}, {told}")
    raise typer.Exit(DependencyError.exit_code if any(result.why for result in results) else 0)


def _select_channels(people: Routing, channel: str | None) -> dict[str, Channel]:
    """Select one channel by name, or all."""
    names = ", ".join(people.channels) or "none"
    if channel is None and not people.channels:
        raise ConfigurationError("no channel is configured: add a table [alerts.channels.NAME]")
    if channel is not None and channel not in people.channels:
        raise ConfigurationError(f"--channel names {channel!r:.80}, the configuration has: {names}")
    return {name: one for name, one in people.channels.items() if channel in {None, name}}


def _describe_silence(told: dict[str, Any]) -> str:
    """Describe a silence in one line."""
    target = "all incidents" if told["target"] == EVERYTHING else told["target"]
    begins = "" if told["is_active"] else f"from {told['from']} "
    return f"silence {told['number']}: {target}, {begins}until {told['until']}, by {told['by']}: {told['why']}"


def _describe_delivery(channel: dict[str, Any]) -> str:
    """Describe the delivery to a channel, with its last failure."""
    tries = f", failures: {channel['tries']}, the last: {channel['last_error']}" if channel["tries"] else ""
    return f"{channel['channel']}: {channel['state']}{tries}"


def _print_incidents(incidents: list[dict[str, Any]]) -> None:
    if not incidents:
        _print_line("no incident is open")
    for one in incidents:
        taken = one["acknowledged"]
        by = f", acknowledged by {taken['by']}{_format_note(taken['note'])}" if taken else ""
        silenced = f", silenced until {one['silenced_until']}" if one["silenced_until"] else ""
        _print_line(f"{one['key']}  since {one['since']}, places: {one['total']:,}{by}{silenced}")
        _print_line(f"    {one['summary']}")


def _format_note(note: str) -> str:
    return f": {note}" if note else ""


def _print_line(line: str) -> None:
    """Print a line without folding: people copy keys from it into the next command."""
    console.stdout().print(line, soft_wrap=True)


def _open_store(config: Path) -> Engine:
    return _open_engine(load_settings(config, has_alerts=True).store.url)


def _open_engine(url: str) -> Engine:
    schema.require_store(url)
    return dialect.create_engine(url)
