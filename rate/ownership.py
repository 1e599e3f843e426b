"""Hosts of this machine: a load is sent to no other one, unless its owner has said so."""

from __future__ import annotations

import socket
from collections.abc import Iterable


def find_strangers(hosts: Iterable[str]) -> list[str]:
    """Return the hosts that are not this machine, those included whose addresses cannot be found."""
    return [host for host in dict.fromkeys(hosts) if not _is_here(host)]


def _is_here(host: str) -> bool:
    """Return whether all addresses of a host can be bound here."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(_can_bind(family, address) for family, _, _, _, address in found)


def _can_bind(family: int, address: tuple[object, ...]) -> bool:
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address[0], 0, *address[2:]))
        except OSError:
            return False
    return True
