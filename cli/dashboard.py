"""``hopwatch dashboard``: serve the dashboard of the configured store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from hopwatch.cli import console, metrics_server
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.cli.metrics_server import MetricsListen
from hopwatch.monitor.errors import ConfigurationError, SettingsError
from hopwatch.monitor.settings import Settings
from hopwatch.probes.metrics.account import REQUEST_OUTCOMES, Account, ComponentAccounts
from hopwatch.probes.metrics.catalog import DASHBOARD

PORT: Final = 8501
HOST: Final = "127.0.0.1"
PATH: Final = re.compile(r"[A-Za-z0-9/_-]*")


def command(
    config: Config = DEFAULT_CONFIG,
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="Where to listen.")] = PORT,
    host: Annotated[str, typer.Option("--host", help="The address to listen at; this machine's own alone.")] = HOST,
    base_path: Annotated[
        str, typer.Option("--base-path", metavar="/PATH", help="Below which path of its host a proxy shows it.")
    ] = "",
    metrics_listen: MetricsListen = None,
) -> None:
    """Show the dashboard in a browser: which stream is unhealthy, where, and since when."""
    chosen = _load_settings(config)
    from hopwatch.dashboards import server

    below = _parse_base_path(base_path)
    login = chosen.dashboard.login
    server.check_packages(login)
    place = server.open_socket(host, port)
    console.configure_log()
    address = host or place.getsockname()[0]
    shown = f"[{address}]" if ":" in address else address.encode("idna").decode()
    own = f"http://{shown}:{port}"
    where = login.url if login else own + below
    # Without a host there is no own URL.
    said = (own if host else "", login.url if login else "", chosen.alerts.dashboard, *chosen.dashboard.origins)
    console.stderr().print(f"hopwatch: the dashboard is at {where}/, Ctrl-C ends it")
    accounts = ComponentAccounts(DASHBOARD, requests=Account(REQUEST_OUTCOMES))
    with metrics_server.serve_accounts(metrics_listen, lambda: accounts, _print_message):
        opened_at = tuple(filter(None, said))
        server.serve(config, place, opened_at, base_path=below, login=login, requests=accounts.requests)


def _print_message(what: str) -> None:
    console.stderr().print(f"hopwatch: {what}")


def _load_settings(config: Path) -> Settings:
    """Load the settings; errors in [alerts] are reported, but do not stop the dashboard.

    Raises:
        SettingsError: other settings are wrong.
        ConfigurationError: the file cannot be read.
    """
    try:
        return load_settings(config, has_alerts=True)
    except SettingsError:
        chosen = load_settings(config)
    told = "hopwatch: [alerts] is wrong, and [alerts] dashboard no origin; hopwatch pathway check says what is wrong"
    console.stderr().print(told)
    return chosen


def _parse_base_path(asked: str) -> str:
    """Parse a base path: empty, or with a leading slash and no trailing one."""
    if not PATH.fullmatch(asked):
        raise ConfigurationError(f"--base-path is a path such as /hopwatch, got {asked!r:.80}")
    return "/" + asked.strip("/") if asked.strip("/") else ""
