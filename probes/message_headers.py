"""Message headers that carry a message's id and event time unchanged through every hop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import getrandbits
from typing import Any, Final, NamedTuple

from hopwatch.probes.contract.ids import UuidId
from hopwatch.probes.values import IdFormat, TimeUnit, build_id_reader, build_time_reader

ID_HEADER: Final = "hopwatch-id"
"""Header of the id, as text: a UUID in its usual form, or any other id of the team."""
TIME_HEADER: Final = "hopwatch-time"
"""Header of the event time, as text: µs since 1970."""

read_id: Final = build_id_reader(IdFormat.AUTO)
"""Return the id in the value of its header, 16 bytes; a ValueError if there is none."""
read_time: Final = build_time_reader(TimeUnit.US)
"""Return the event time in the value of its header, µs since 1970; a ValueError if there is none."""

_NAMES: Final[Mapping[str | bytes, str]] = {
    form: name for name in (ID_HEADER, TIME_HEADER) for form in (name, name.encode())
}

HeadersLike = Mapping[Any, object] | Iterable[tuple[Any, object]]
"""Headers as clients take and return them: names are text or bytes and may repeat, values are bytes, text or None."""


class MessageIdentity(NamedTuple):
    """Identity of a message for a probe: its id, 16 bytes, and its event time in µs since 1970."""

    message_id: bytes
    event_us: int


def parse_headers(headers: HeadersLike | None) -> MessageIdentity | None:
    """Parse the identity that headers carry; None if both headers are absent.

    Raises:
        ValueError: a header cannot be read, or one is present without the other.
    """
    if not headers:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    # The last header of a name counts: a service that marks a message anew appends its own. Some clients return bytes.
    found = {_NAMES[name]: value for name, value in pairs if name in _NAMES}
    if not found:
        return None
    if len(found) == 1:
        raise ValueError(f"a message is marked by {ID_HEADER} and {TIME_HEADER}, got {next(iter(found))} alone")
    return MessageIdentity(read_id(found[ID_HEADER]), read_time(found[TIME_HEADER]))


def build_headers(now_us: int) -> tuple[MessageIdentity, list[tuple[str, bytes]]]:
    """Build the identity of a message that is created now, and the headers that carry it."""
    message_id = generate_id(now_us)
    digits = message_id.hex()
    text = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return MessageIdentity(message_id, now_us), [(ID_HEADER, text.encode()), (TIME_HEADER, b"%d" % now_us)]


def generate_id(now_us: int) -> bytes:
    """Generate a UUID of version 7 (RFC 9562): milliseconds since 1970, then 74 random bits."""
    # Not for secrets: Python reseeds this generator in the child of a fork, and a call to the kernel takes ten times as
    # long.
    chance = getrandbits(74)
    high = (now_us // 1_000) << 16 | 0x7000 | chance >> 62
    return UuidId((high << 64 | 0x8000_0000_0000_0000 | chance & (1 << 62) - 1).to_bytes(16))
