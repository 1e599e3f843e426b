"""Network addresses: where to listen, and who owns the other end of a connection."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

MAX_PORT: Final = 65_535
_LISTEN: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})")
_HOST_BITS: Final = 64
"""Low bits of an IPv6 address that are ignored: the owner of one address has its whole /64 network."""


class ListenAddress(NamedTuple):
    """Host and port to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return ``HOST:PORT``, with the host of IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen_address(value: object) -> ListenAddress:
    """Parse ``HOST:PORT``.

    Raises:
        ValueError: it is none.
    """
    match = _LISTEN.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match[3]) <= MAX_PORT:
        msg = f'an address is HOST:PORT, such as "127.0.0.1:9464", "0.0.0.0:9464" or "[::1]:9464"; got {value!r:.80}'
        raise ValueError(msg)
    return ListenAddress(match[1] or match[2], int(match[3]))


def identify_owner(host: str) -> str:
    """Return the owner of an address: an IPv4 address itself, also if mapped to IPv6; of IPv6 its /64 network."""
    address = ip_address(host.partition("%")[0]) if host else None
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or int(address) >> _HOST_BITS)
