"""Starts Streamlit over the app, in this process, until somebody ends it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

from monitor.errors import DependencyError

APP: Final = Path(__file__).with_name("app.py")


def serve(config: Path, host: str, port: int) -> None:
    """Serve the dashboard over the store of a configuration; return when SIGINT or SIGTERM ends it.

    Raises:
        DependencyError: the address cannot be had.
    """
    check(host, port)
    from streamlit.web import bootstrap  # noqa: PLC0415 - a second, and of use here alone

    from dashboards import look  # noqa: PLC0415

    flags = look.options() | {"server.address": host, "server.port": port}
    options = {name.replace(".", "_"): value for name, value in flags.items()}
    bootstrap.load_config_options(options)
    bootstrap.run(str(APP), is_hello=False, args=[str(config.absolute())], flag_options=options)


def check(host: str, port: int) -> None:
    """Check that nobody else listens at an address.

    Raises:
        DependencyError: somebody does, or the address is none of this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, port))
    except OSError as error:
        what = f"the dashboard cannot listen at {host}:{port}: {error.strerror or error}"
        raise DependencyError(f"{what}; choose another with --port or --host") from error
