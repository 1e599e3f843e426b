"""Whose a connection is, for bounds on how many one has."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final

_HOST_BITS: Final = 64
"""Of an address of IPv6: whoever has one address of a network has all that these bits tell apart."""


def identify_owner(host: str) -> str:
    """Return whose an address is: its own, and of IPv6 its network's; one of IPv4 is the same in both families."""
    address = ip_address(host.partition("%")[0]) if host else None
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or int(address) >> _HOST_BITS)
