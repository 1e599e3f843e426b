"""``hopwatch quarantine``: list, show and replay events that the gate rejected."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from rich.table import Table

from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, AsJson, Config, load_settings
from hopwatch.monitor.errors import ConfigurationError, TransportError
from hopwatch.monitor.results import format_iso

if TYPE_CHECKING:
    from hopwatch.gate.intake import EventResult
    from hopwatch.gate.records import RejectedRecord
    from hopwatch.monitor.settings import Settings

FINDING_EXIT_CODE: Final = 1
MAX_LISTED: Final = 100

Stream = Annotated[str | None, typer.Option("--stream", help="The stream, one of [gate.streams].")]
Delivery = Annotated[
    str | None, typer.Option("--delivery", metavar="NAME", help="Instead of it: the delivery, one of [deliver.NAME].")
]
Reason = Annotated[str | None, typer.Option("--reason", help="Only those with this text in a reason.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the event, as the list has it.")]

command = typer.Typer(help="List, show and replay rejected events.", no_args_is_help=True)


@command.callback()
def _quarantine() -> None:
    """List, show and replay rejected events."""


@command.command("list")
def list_(  # noqa: PLR0913 - one parameter a flag
    stream: Stream = None,
    delivery: Delivery = None,
    config: Config = DEFAULT_CONFIG,
    *,
    reason: Reason = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="So many at most, the newest.")] = MAX_LISTED,
    as_json: AsJson = False,
) -> None:
    """List the events that are rejected still."""
    origin = _find_origin(config, stream, delivery)
    found = _filter_by_reason(_read_rejected(origin), reason)
    if as_json:
        console.emit_json(
            {**origin.as_json, "rejected": len(found), "events": [_event_to_json(one) for one in found[-limit:]]}
        )
        return
    if not found:
        wanted = "" if reason is None else f" for {reason!r:.80}"
        console.stderr().print(f"no event of {origin.name} is rejected{wanted}")
        return
    table = Table(title=f"{len(found):,} rejected of {origin.name}")
    for name in ("id", "arrived", "producer", "held", "bytes", "reasons"):
        table.add_column(name, overflow="fold", no_wrap=name in {"id", "arrived", "bytes"})
    for one in found[-limit:]:
        told = _event_to_json(one)
        reasons = "; ".join(f"{reason['place'] or '/'}: {reason['detail']}" for reason in told["reasons"])
        held = "yes" if one.is_held else ""
        table.add_row(told["id"], told["arrived"], one.producer, held, f"{len(one.data):,}", reasons)
    console.stdout().print(table)
    if len(found) > limit:
        console.stderr().print(f"the newest {limit:,} of {len(found):,}: --limit shows more")


@command.command("show")
def show_rejected(  # noqa: PLR0913 - one parameter a flag
    event: Id,
    stream: Stream = None,
    delivery: Delivery = None,
    config: Config = DEFAULT_CONFIG,
    *,
    data: Annotated[bool, typer.Option("--data", help="The event alone, byte for byte as it was sent.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one of them: why it was rejected, and what was sent."""
    (one,) = _select_events(_read_rejected(_find_origin(config, stream, delivery)), [event])
    if data:
        console.emit_bytes(one.data)
        return
    told = _event_to_json(one) | {"data": one.data.decode("utf-8", "replace")}
    if as_json:
        console.emit_json(told)
        return
    out = console.stdout()
    for name in ("id", "stream", "event_time", "arrived", "producer"):
        out.print(f"{name.replace('_', ' ')}: {told[name]}")
    for reason in told["reasons"]:
        out.print(f"reason: {reason['place'] or '/'}: {reason['detail']}")
    for line in told["data"].split("\n"):
        out.print(line)


@command.command("replay")
def replay(  # noqa: PLR0913 - one parameter a flag
    events: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="The ids of the events.")] = None,
    *,
    stream: Stream = None,
    delivery: Delivery = None,
    config: Config = DEFAULT_CONFIG,
    every: Annotated[bool, typer.Option("--all", help="All that were rejected.")] = False,
    reason: Reason = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="Send this instead of what was sent; for one ID.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send rejected events in again, as they were.

    They keep their ids and event times; what enters is listed no more. The same schema and rules are asked as the gate
    asks them. What a delivery rejected goes to its retrier, which sends it at once. Exit code 1 if one of them may not
    enter still.
    """
    if (bool(events) + every + (reason is not None)) != 1:
        raise ConfigurationError("name the events: ids, --all, or --reason TEXT, one of these")
    if data is not None and (events is None or len(events) != 1):
        raise ConfigurationError("--data is what one event is to be: name its id, and no other")
    origin = _find_origin(config, stream, delivery)
    found = _read_rejected(origin)
    wanted = _select_events(found, events) if events else _filter_by_reason(found, reason)
    told = _replay_wanted(origin, wanted, None if data is None else _read_file(data))
    entered = len(wanted) - len(told)
    if as_json:
        console.emit_json({**origin.as_json, "replayed": entered, "refused": told})
    else:
        for why in told:
            console.stderr().print(f"{why['id']} may not enter: {'; '.join(why['reasons'])}")
        console.stdout().print(f"{entered:,} of {len(wanted):,} events of {origin.name} entered")
    if told:
        raise typer.Exit(FINDING_EXIT_CODE)


class _Origin(NamedTuple):
    """Place of rejected events: that of a stream's gate, or of a delivery."""

    settings: Settings
    name: str
    url: str
    is_delivery: bool

    @property
    def as_json(self) -> dict[str, str]:
        """The stream or the delivery, as JSON has it."""
        return {"delivery" if self.is_delivery else "stream": self.name}


def _find_origin(config: Path, stream: str | None, delivery: str | None) -> _Origin:
    """Return the place of the rejected events that the flags name.

    Raises:
        ConfigurationError: they name none or two, or one that is not there.
    """
    if (stream is None) == (delivery is None):
        raise ConfigurationError("name the origin: --stream of [gate.streams], or --delivery of [deliver.NAME]")
    if stream is not None:
        chosen = _load_settings(config, stream)
        return _Origin(chosen, stream, chosen.gate.streams[stream].rejected_url(stream), is_delivery=False)
    chosen = load_settings(config)
    name = delivery or ""
    if name not in chosen.deliver:
        names = ", ".join(chosen.deliver) or "none"
        raise ConfigurationError(f"--delivery names {name!r:.80}, [deliver] has: {names}")
    return _Origin(chosen, name, chosen.deliver[name].rejected_url(), is_delivery=True)


def _replay_wanted(origin: _Origin, wanted: Sequence[RejectedRecord], data: bytes | None) -> list[dict[str, Any]]:
    """Replay events, and return those that are refused, as JSON."""
    if origin.is_delivery:
        from hopwatch.cli.delivery_builder import replay_rejected

        refused = replay_rejected(origin.settings, origin.name, wanted, data)
        return [_refusal_to_json(one, HTTPStatus.UNPROCESSABLE_ENTITY, [why]) for one, why in refused]
    from hopwatch.gate.intake import EventStatus

    outcomes = _replay_events(origin.settings, origin.name, wanted, data)
    return [
        _refusal_to_json(one, outcome.status, [f"{fault.place or '/'}: {fault.detail}" for fault in outcome.faults])
        for one, outcome in zip(wanted, outcomes, strict=True)
        if outcome.status is not EventStatus.ENTERED
    ]


def _load_settings(config: Path, stream: str) -> Settings:
    chosen = load_settings(config)
    if stream not in chosen.gate.streams:
        names = ", ".join(chosen.gate.streams) or "none"
        raise ConfigurationError(f"--stream names {stream!r:.80}, [gate.streams] has: {names}")
    return chosen


def _read_rejected(origin: _Origin) -> list[RejectedRecord]:
    from hopwatch.gate.quarantine import QuarantineError, read_rejected

    try:
        access = origin.settings.transport.access
        return read_rejected(origin.url, access, origin.name if origin.is_delivery else None)
    except QuarantineError as error:
        raise TransportError(str(error)) from None


def _filter_by_reason(found: Sequence[RejectedRecord], reason: str | None) -> list[RejectedRecord]:
    """Filter events by a text in one of their reasons, if one is given."""
    if reason is None:
        return list(found)
    return [one for one in found if any(reason in f"{fault.place}: {fault.detail}" for fault in one.reasons)]


def _select_events(found: Sequence[RejectedRecord], events: Sequence[str]) -> list[RejectedRecord]:
    from hopwatch.gate import ids

    by_id = {ids.format_uuid(one.event_id): one for one in sorted(found, key=lambda one: one.owns_id)}
    unknown = [event for event in events if event.lower() not in by_id]
    if unknown:
        told = f"there is no rejected event {unknown[0]!r:.80}, or it is in: 'hopwatch quarantine list' has all"
        raise ConfigurationError(told)
    return [by_id[event.lower()] for event in dict.fromkeys(events)]


def _read_file(data: Path) -> bytes:
    try:
        return data.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"--data {data} cannot be read: {error.strerror}") from None


def _replay_events(
    chosen: Settings, stream: str, wanted: Sequence[RejectedRecord], data: bytes | None
) -> list[EventResult]:
    from hopwatch.cli.gate_builder import build_gate, open_registry
    from hopwatch.gate.outlets import OutletError
    from hopwatch.gate.replay import replay_events
    from hopwatch.probes.http.problems import HttpProblem

    registry = open_registry(chosen)
    gate = build_gate(chosen, [stream])
    try:
        gate.check_outlets()
        return replay_events(gate, registry, stream, wanted, data)
    except (OutletError, HttpProblem) as error:
        raise TransportError(getattr(error, "detail", str(error))) from None


def _event_to_json(one: RejectedRecord) -> dict[str, Any]:
    from hopwatch.gate import ids

    return {
        "id": ids.format_uuid(one.event_id),
        "stream": one.stream,
        "event_time": None if one.event_us is None else format_iso(one.event_us),
        "arrived": format_iso(one.arrived_us),
        "producer": one.producer,
        "is_held": one.is_held,
        "bytes": len(one.data),
        "reasons": [{"place": fault.place, "detail": fault.detail} for fault in one.reasons],
    }


def _refusal_to_json(one: RejectedRecord, status: int, reasons: Sequence[str]) -> dict[str, Any]:
    from hopwatch.gate import ids

    told = list(reasons) or ["it was not written"]
    return {"id": ids.format_uuid(one.event_id), "status": int(status), "reasons": told}
