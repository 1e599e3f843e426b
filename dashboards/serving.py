"""Starts Streamlit over the app, in this process, until somebody ends it."""

from __future__ import annotations

import socket
from importlib import import_module
from pathlib import Path
from typing import Final

from monitor.errors import DependencyError
from monitor.settings.dashboard import LoginSettings

APP: Final = Path(__file__).with_name("app.py")
NEEDED: Final = ("altair", "streamlit")
NEEDED_FOR_LOGIN: Final = "authlib.integrations.starlette_client"
"""What Streamlit talks to a provider with."""


def serve(config: Path, host: str, port: int, *, base_path: str = "", login: LoginSettings | None = None) -> None:
    """Serve the dashboard over the store of a configuration; return when SIGINT or SIGTERM ends it.

    It is below ``base_path`` of its host.

    Raises:
        DependencyError: the address cannot be had.
        ModuleNotFoundError: a package that it needs is not installed.
    """
    check(host, port, login)
    from streamlit.runtime.secrets import secrets_singleton  # noqa: PLC0415
    from streamlit.web import bootstrap  # noqa: PLC0415 - a second, and of use here alone

    from dashboards import entrance, look  # noqa: PLC0415

    if login is not None:
        secrets_singleton.merge_programmatic_secrets(entrance.secrets_of(login))
    flags = look.options() | {"server.address": host, "server.port": port, "server.baseUrlPath": base_path}
    options = {name.replace(".", "_"): value for name, value in flags.items()}
    bootstrap.load_config_options(options)
    bootstrap.run(str(APP), is_hello=False, args=[str(config.absolute())], flag_options=options)


def check(host: str, port: int, login: LoginSettings | None = None) -> None:
    """Check that nobody else listens at an address, and that all that is needed is installed.

    Raises:
        DependencyError: somebody does, or the address is none of this machine's.
        ModuleNotFoundError: it is not.
    """
    for package in NEEDED if login is None else (*NEEDED, NEEDED_FOR_LOGIN):
        import_module(package)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, port))
    except OSError as error:
        what = f"the dashboard cannot listen at {host}:{port}: {error.strerror or error}"
        raise DependencyError(f"{what}; choose another with --port or --host") from error
