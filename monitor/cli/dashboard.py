"""``hopwatch dashboard``: the pages over the configured store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from monitor import settings
from monitor.cli import console

PORT: Final = 8501
HOST: Final = "127.0.0.1"


def command(
    config: Annotated[Path, typer.Option("--config", help="The configuration file.")] = Path("hopwatch.toml"),
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="Where to listen.")] = PORT,
    host: Annotated[str, typer.Option("--host", help="The address to listen at; this machine's own alone.")] = HOST,
) -> None:
    """Show the dashboard in a browser: which stream is unhealthy, where, and since when."""
    chosen = settings.load(config, flags={}, environ=os.environ)
    from dashboards import serving

    login = chosen.dashboard.login
    serving.check(host, port, login)
    shown = f"[{host}]" if ":" in host else host
    place = login.url if login else f"http://{shown}:{port}"
    console.words().print(f"hopwatch: the dashboard is at {place}/, Ctrl-C ends it")
    serving.serve(config, host, port, login)
