"""Rules for the addresses of receivers that a person names in a configuration. Pure.

Receivers may be in private networks and on this machine. Link-local addresses are refused, as metadata services of
clouds hand out credentials there, and so are addresses that are no single machine.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
from typing import Final

METADATA_NETWORKS: Final = tuple(
    ip_network(network)
    for network in (
        *("fd00:ec2::/32", "fd20:ce::254/128"),  # AWS, Google
        *("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),  # Alibaba, Azure, Oracle
    )
)
"""Metadata services that are not on the local link."""
_THIS_NETWORK: Final = ip_network("0.0.0.0/8")
_TRANSLATED_NETWORKS: Final = tuple(map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96")))
"""Prefixes of IPv6 addresses that end with an embedded IPv4 address: NAT64, global and local, and two older ones."""
Address = IPv4Address | IPv6Address


def refusal_reason(address: Address) -> str:
    """Return the reason for refusing an address; empty if it is allowed."""
    inner = _embedded_ipv4(address)
    if inner is not None:
        return refusal_reason(inner)
    if address.is_link_local:
        return "link-local, where clouds keep credentials"
    if address.is_multicast or str(address) == "255.255.255.255":
        return "many machines at once"
    if address.is_unspecified or address in _THIS_NETWORK:
        return "no machine"
    if any(address in network for network in METADATA_NETWORKS):
        return "a cloud's metadata service"
    return ""


def _embedded_ipv4(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that is embedded in an IPv6 one."""
    if isinstance(address, IPv4Address):
        return None
    end = int(address) & 0xFFFF_FFFF
    # Loopback and the unspecified address end in 1 and 0, and embed no IPv4 address.
    if end > 1 and any(address in network for network in _TRANSLATED_NETWORKS):
        return IPv4Address(end)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
