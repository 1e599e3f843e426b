"""``hopwatch ready``: whether a span of a stream is complete, by a contract of the configuration."""

from __future__ import annotations

import time
from threading import Event
from typing import Annotated, Any, Final

import typer

from hopwatch.cli import console, signals
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings, parse_span_us
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.completeness import CompletenessState
from hopwatch.monitor.lookup.completeness import ask_completeness, is_decided
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.texts.moments import parse_moment_us

EXIT_CODES: Final = {CompletenessState.COMPLETE: 0, CompletenessState.PENDING: 1, CompletenessState.FAILED: 4}
POLL_S: Final = 2.0
"""Interval at which the store is read anew, with --wait."""


def command(  # noqa: PLR0913 - one a flag
    name: Annotated[str, typer.Argument(metavar="NAME", help="The contract, [completeness.NAME].")],
    until: Annotated[str, typer.Option("--until", help="The end of the span: a whole minute, ISO 8601.")],
    config: Config = DEFAULT_CONFIG,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="SPAN", help="With --wait: for so long at most, such as 30m.")
    ] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is complete, or will not be.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say whether a span of a stream is complete. Exit 0 yes, 1 not yet, 4 it will not be."""
    if timeout is not None and not wait:
        raise ConfigurationError("--timeout is how long --wait waits: give both, or neither")
    chosen = load_settings(config)
    until_us = parse_moment_us("--until", until)
    assert until_us is not None  # noqa: S101 - the flag is required
    until_s = None if timeout is None else time.monotonic() + parse_span_us("--timeout", timeout) / 1e6
    chosen.require_contract(name)
    schema.require_store(chosen.store.url)
    engine, clock, stop = dialect.create_engine(chosen.store.url), SystemClock(), Event()
    with signals.stop_on_signals(stop):
        answer = ask_completeness(engine, chosen, name, until_us, clock.now_us())
        while wait and not is_decided(answer):
            left_s = POLL_S if until_s is None else min(POLL_S, until_s - time.monotonic())
            if left_s <= 0 or stop.wait(left_s):
                break
            # A file that was put aside stays open, and nothing ever changes in it.
            engine.dispose()
            schema.require_store(chosen.store.url)
            answer = ask_completeness(engine, chosen, name, until_us, clock.now_us())
    if as_json:
        console.emit_json(answer)
    else:
        _print_answer(answer)
    raise typer.Exit(EXIT_CODES[CompletenessState(answer["state"])])


def _print_answer(answer: dict[str, Any]) -> None:
    words = console.stdout()
    said = {CompletenessState.COMPLETE: "is complete", CompletenessState.PENDING: "is not complete yet"}
    told = said.get(CompletenessState(answer["state"]), "will not be complete")
    words.print(f"{answer['contract']}: {answer['stream']} from {answer['from']} to {answer['until']} {told}")
    upper = "unknown" if answer["lost_upper"] is None else f"{answer['lost_upper']:,}"
    counts = f"messages known: {answer['known']:,}, surely lost: {answer['lost_lower']:,}, lost at most: {upper}"
    words.print(f"    in final windows {counts}")
    for part in ("blocked", "probes", "holes"):
        for one in answer[part]:
            words.print(f"    {one['text']}")
    if answer["state"] == CompletenessState.PENDING and answer["earliest"]:
        words.print(f"    it can change at {answer['earliest']} at the earliest")
    if answer["state"] == CompletenessState.COMPLETE:
        words.print(f"    it stays so unless a window is amended, as by what comes until {answer['amendable_until']}")
