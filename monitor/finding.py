"""What is kept of one message: its stamps in the segments of the transport, and where the store has it as missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from monitor import journey
from monitor.journey import Stamp
from monitor.spark import source
from monitor.store import dialect, reader, schema

if TYPE_CHECKING:
    from monitor.settings import Settings

Chosen = Callable[[Sequence[Path]], Iterable[Path]]
"""Which of the segments that are kept are looked into, and in which order."""


class Lost(NamedTuple):
    """A window, by stream and start, and a node at which the store has a message as missing.

    ``loss`` is how many are missing there, ``loss_lower`` how many of them are surely lost.
    """

    stream: str
    window_start_us: int
    node: str
    loss: int
    loss_lower: int
    message_id: bytes


def stamps(
    settings: Settings, wanted: tuple[bytes, ...], stream: str | None = None, chosen: Chosen = list
) -> tuple[Stamp, ...]:
    """Return every observation of the wanted ids that the transport's segments still hold, in order of the journey.

    Raises:
        TransportError: the segments cannot be read.
    """
    return tuple(journey.stamps(chosen(source.of(settings).segments()), wanted, stream))


def lost(url: str, wanted: tuple[bytes, ...], stream: str | None = None) -> tuple[Lost, ...]:
    """Return where the store at a URL has the wanted ids as lost; nowhere if no store was made yet.

    Raises:
        StoreError: it cannot be read.
    """
    if not schema.is_there(url):
        return ()
    engine = dialect.engine(url)
    try:
        return tuple(Lost(*where, one) for one in wanted for where in reader.where_lost(engine, one, stream))
    finally:
        engine.dispose()
