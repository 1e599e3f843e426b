"""Which commands there are; only the one that is called is imported, so that ``hopwatch --help`` is quick."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Annotated, Final

import typer

import hopwatch

COMMANDS: Final = {
    "init": "Write a first hopwatch.toml, and say what services need.",
    "demo": "Run a small pipeline under watch, with faults at will.",
    "run": "Run the monitor, as a stream or once over all there is.",
    "report": "Show the loss and lag of each window and node.",
    "find": "Show one message's journey, as far as it is kept.",
    "dashboard": "Show the dashboard in a browser.",
    "topics": "Make the Kafka topic of observations, or check it.",
    "pathway": "Look at the pathways that a configuration declares.",
    "gate": "Let events into streams, and keep their schemas.",
    "quarantine": "Look at events that were rejected, and replay them.",
    "schema": "Look at the schemas of streams, and register them.",
    "tap": "Stamp what passes a service, from beside it.",
    "validate": "Validate streams that are in Kafka already.",
    "alerts": "Look at alerts, and take them on.",
    "store": "Look after the store.",
    "outliers": "Find what is strange in series of numbers.",
    "doctor": "Check what Hopwatch stands on, and say what to do.",
}
"""Each command and its first line of help; ``cli/NAME.py`` holds it as ``command``, a function or a Typer."""


def build_application(arguments: Sequence[str]) -> typer.Typer:
    """Return the program for these arguments: all commands by name, the one that is called in full."""
    app = typer.Typer(
        name="hopwatch",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_hopwatch)
    called = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, summary in COMMANDS.items():
        if name != called:
            app.command(name, help=summary)(_placeholder)
            continue
        command = importlib.import_module(f"hopwatch.cli.{name}").command
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _placeholder() -> None:
    """Stand for a command that is listed and not called."""


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it with the flag's value
    if asked:
        from hopwatch.cli import console

        console.stdout().print(f"hopwatch {hopwatch.__version__}")
        raise typer.Exit


def _hopwatch(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Say what a pipeline of messages lost and how late it was, for each node and minute."""
