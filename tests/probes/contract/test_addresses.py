"""Tests of whose a connection is."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.addresses import identify_owner


@given(st.ip_addresses(v=4))
def test_an_address_of_ipv4_is_one_owner_in_both_families(address: IPv4Address) -> None:
    """A socket of IPv6 writes it another way."""
    assert identify_owner(str(address)) == identify_owner(f"::ffff:{address}") == str(address)


@given(st.ip_addresses(v=6), st.integers(0, 2**64 - 1))
def test_a_network_of_ipv6_is_one_owner(address: IPv6Address, host: int) -> None:
    """All addresses of one IPv6 network have one owner, and other networks have others."""
    if address.ipv4_mapped is not None:
        return
    network = int(address) >> 64 << 64
    if network:
        assert (
            identify_owner(str(address))
            == identify_owner(str(IPv6Address(network | host)))
            == identify_owner(f"{address}%eth0")
        )
    assert identify_owner(str(address)) != identify_owner(str(IPv6Address(int(address) ^ 1 << 64)))


@pytest.mark.parametrize("host", ["", "192.0.2.1"])
def test_what_has_no_network_owns_itself(host: str) -> None:
    """A socket without an address too."""
    assert identify_owner(host) == host
