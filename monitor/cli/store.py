"""``hopwatch store``: takes the store to the newest version of its tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from monitor import settings
from monitor.cli import console
from monitor.store import dialect, schema

Config = Annotated[Path, typer.Option("--config", help="The configuration file.")]

command = typer.Typer(help="Look after the store.", no_args_is_help=True)


@command.callback()
def _store() -> None:
    """Look after the store."""


@command.command()
def migrate(config: Config = Path("hopwatch.toml")) -> None:
    """Take the store to the version of its tables that this program needs.

    In one transaction, while no monitor runs. A store that is not there yet is made.
    """
    url = settings.load(config, flags={}, environ=os.environ).store.url
    with dialect.errors_named(url), dialect.sole_writer(url):
        found, now = schema.migrate(dialect.engine(url))
    name = dialect.name_of(url)
    if found == now:
        told = f"the store {name} has schema version {now} already"
    else:
        told = f"the store {name} is at schema version {now}, {f'before at {found}' if found else 'newly made'}"
    console.words().print(told)
