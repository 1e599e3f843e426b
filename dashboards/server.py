"""ASGI server of the dashboard: runs Streamlit in this process until a signal ends it."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Final

from hopwatch.monitor.errors import DependencyError
from hopwatch.monitor.settings.dashboard import LoginSettings
from hopwatch.probes.metrics.account import Account

APP: Final = Path(__file__).with_name("app.py")
REQUIRED_PACKAGES: Final = ("streamlit", "uvicorn")
LOGIN_PACKAGE: Final = "authlib.integrations.starlette_client"
"""Package with which Streamlit talks to a login provider."""
MAX_BACKLOG: Final = 128
"""Backlog of connections; so many are accepted at once, before those beyond the bound are closed."""
SHUTDOWN_TIMEOUT_S: Final = 5
MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Of one message of a browser: it says what a person has clicked."""
PING_INTERVAL_S: Final = 30.0


def check_packages(login: LoginSettings | None = None) -> None:
    """Check that all that is needed is installed.

    Raises:
        ModuleNotFoundError: it is not.
    """
    for package in REQUIRED_PACKAGES if login is None else (*REQUIRED_PACKAGES, LOGIN_PACKAGE):
        import_module(package)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        DependencyError: the address is in use, or is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only for IPPROTO_TCP sockets; otherwise Nagle adds 40 ms to each small reply.
    place = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if family == socket.AF_INET6:
            # All addresses are those of IPv4 too.
            place.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind((host, port))
        place.listen(MAX_BACKLOG)
    except OSError as error:
        place.close()
        what = f"the dashboard cannot listen at {host}:{port}: {error.strerror or error}"
        raise DependencyError(f"{what}; choose another with --port or --host") from error
    return place


def serve(  # noqa: PLR0913 - what a flag or a key each says
    config: Path,
    place: socket.socket,
    opened_at: Iterable[str] = (),
    *,
    base_path: str = "",
    login: LoginSettings | None = None,
    requests: Account | None = None,
) -> None:
    """Serve the dashboard over the store of a configuration; return when SIGINT or SIGTERM ends it.

    It is below ``base_path`` of its host. ``opened_at`` are URLs at which people open it beside this machine's own;
    ``requests`` keeps their account.
    """
    import streamlit as st  # noqa: PLC0415 - a second, and of use here alone
    import uvicorn  # noqa: PLC0415
    from streamlit.web import bootstrap  # noqa: PLC0415

    from hopwatch.dashboards import login_page, theme  # noqa: PLC0415
    from hopwatch.dashboards.connections import BoundedHttpProtocol  # noqa: PLC0415
    from hopwatch.dashboards.origins import OriginMiddleware  # noqa: PLC0415
    from hopwatch.dashboards.static_cache import StaticCacheMiddleware  # noqa: PLC0415
    from hopwatch.probes.http.request_count import RequestCountMiddleware  # noqa: PLC0415

    host, port, *_ = place.getsockname()
    secrets = login_page.build_secrets(login) if login is not None else None
    flags = theme.build_options() | {"server.address": host, "server.port": port, "server.baseUrlPath": base_path}
    if secrets is not None:
        # What a login that has begun is signed with is asked for before secrets are known.
        flags["server.cookieSecret"] = secrets[login_page.AUTH]["cookie_secret"]
    bootstrap.load_config_options({name.replace(".", "_"): value for name, value in flags.items()})
    sys.argv = [str(APP), str(config.absolute())]
    guarded = OriginMiddleware(StaticCacheMiddleware(st.App(APP, secrets=secrets)), opened_at)
    app = RequestCountMiddleware(guarded, requests or Account())
    served = uvicorn.Config(
        app,
        http=BoundedHttpProtocol,
        backlog=MAX_BACKLOG,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        # As Streamlit does by itself.
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_interval=PING_INTERVAL_S,
        ws_ping_timeout=PING_INTERVAL_S,
    )
    # uvicorn ends in good order at each of them, and then raises it again for who listened before.
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    uvicorn.Server(served).run(sockets=[place])
