"""Processes of the test servers, as the demo has them for its brokers, and the programs of Debian's packages."""

from __future__ import annotations

import shutil

from hopwatch.demo.server_process import PATIENCE_S, Process, ServerError, answers, free_ports, until

__all__ = ["PATIENCE_S", "Process", "ServerError", "answers", "free_ports", "installed", "until"]


def installed(program: str, package: str) -> str:
    """Return where a program of one of Debian's packages is.

    Raises:
        ServerError: it is not installed.
    """
    found = shutil.which(program)
    if found is None:
        raise ServerError(f"{program} is not installed: apt-get install {package}")
    return found
