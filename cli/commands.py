"""Registry of commands; only the called one is imported, so that ``hopwatch --help`` is fast."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Annotated, Final

import typer

import hopwatch

COMMANDS: Final = {
    "init": "Write a first hopwatch.toml, and show the probe code.",
    "demo": "Run a small monitored pipeline, with faults on demand.",
    "run": "Run the monitor, as a stream or once over all records.",
    "report": "Show the loss and lag of each window and node.",
    "top": "Show each node's throughput, lag and backlog now.",
    "lag": "Show the lag of consumer groups by partition.",
    "ready": "Say whether a span of a stream is complete.",
    "completeness": "Show how complete windows would have been after each wait.",
    "find": "Show the journey of a message from stored data.",
    "redrive": "Send messages that are surely lost again.",
    "compare": "Compare a new version at a node with the others.",
    "evidence": "Export final windows as a signed file, and verify one.",
    "api": "Serve the results of the store by HTTP.",
    "mark": "Mark a moment, such as a deploy, in the charts.",
    "markers": "List and remove markers.",
    "dashboard": "Show the dashboard in a browser.",
    "topics": "Create the Kafka topic of observations, or check it.",
    "pathway": "Check pathways, and find nodes that they lack.",
    "gate": "Serve the gate for events, and the schema registry.",
    "quarantine": "List, show and replay rejected events.",
    "schema": "List, check and register schemas.",
    "tap": "Stamp the messages of a service from a sidecar.",
    "import": "Import observations out of files.",
    "validate": "Validate streams that are in Kafka already.",
    "deliver": "Deliver topics to HTTP receivers.",
    "instrument": "Run a service so that its messages are stamped.",
    "scale": "Run as many processes of a command as their lag asks for.",
    "rate": "Find the highest rate at which a stream keeps a target.",
    "alerts": "List, acknowledge and silence alerts, and test channels.",
    "store": "Migrate and prune the store.",
    "outliers": "List outliers, and score series of numbers.",
    "doctor": "Check the environment of Hopwatch, and give advice.",
}
"""Each command and its first line of help; ``cli/NAME.py`` holds it as ``command``, a function or a Typer; a
``CommandClass`` beside a function is the class of its click command."""

MODULES: Final = {"import": "import_files"}
"""Modules of commands whose names are words of Python."""


def build_application(arguments: Sequence[str]) -> typer.Typer:
    """Build the program for these arguments: all commands by name, with the called one loaded."""
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
        module = importlib.import_module(f"hopwatch.cli.{MODULES.get(name, name)}")
        command = module.command
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name, cls=getattr(module, "CommandClass", None))(command)
    return app


def _placeholder() -> None:
    """Placeholder of a command that is listed but not called."""


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
    """Monitor loss and lag of streaming pipelines, for each node and window."""
