"""Owners of network connections, for limits on connections per owner."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final

_HOST_BITS: Final = 64
"""Low bits of an IPv6 address that are ignored: the owner of one address has its whole /64 network."""


def identify_owner(host: str) -> str:
    """Return the owner of an address: an IPv4 address itself, also if mapped to IPv6; of IPv6 its /64 network."""
    address = ip_address(host.partition("%")[0]) if host else None
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or int(address) >> _HOST_BITS)
