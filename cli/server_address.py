"""The address that a command serves at, with checked TLS files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hopwatch.cli import console
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.probes.http.granian_server import ServerAddress, Tls, TlsError

if TYPE_CHECKING:
    from hopwatch.monitor.settings.gate import TlsSettings


def build_address(said: TlsSettings | None, table: str, host: str, port: int) -> ServerAddress:
    """Build the address from the TLS files of a table, if there is one; report flaws of its certificate.

    Raises:
        ConfigurationError: the files cannot be used.
    """
    if said is None:
        return ServerAddress(host, port)
    tls = Tls(Path(said.certificate), Path(said.key), Path(said.client_ca) if said.client_ca else None)
    try:
        tls.check()
    except TlsError as error:
        raise ConfigurationError(f"[{table}]: {error}") from None
    if flaw := tls.describe_flaw(SystemClock().now_us() / 1e6):
        console.stderr().print(f"hopwatch: [{table}]: {flaw}")
    return ServerAddress(host, port, tls)
