"""Marking of messages by two headers, which clients of all kinds have in common: id and event time travel unchanged."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from hopwatch.probes import Probe, message_headers
from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER, HeadersLike, MessageIdentity
from hopwatch.probes.once_per_cause import OncePerCause

UNMARKED: Final = "unmarked message"
BAD_MARKS: Final = "bad marks"

_log = logging.getLogger("hopwatch.probe")
_consuming: set[tuple[str, str]] = set()
"""Pairs (stream, node) of the consumers in this process; a producer at such a node only forwards."""


class MessageMarker:
    """Marker of the messages of one client: sets headers where messages are made, and reads them everywhere else.

    Nothing of it raises: a message that it cannot mark or read counts as one that was missed.
    """

    def __init__(  # noqa: PLR0913 - what can be chosen
        self,
        probe: Probe,
        client: str,
        *,
        origin: bool | None = None,
        ignores: bool = False,
        advice: str = "the headers of the message",
        clock: Clock | None = None,
    ) -> None:
        """Set the probe, and for the log the name of the client, and by which argument headers are passed on.

        ``origin`` says whether messages are made here, None that they are unless a client of the same stream and node
        consumes in this process. Messages without headers are not missed if it ``ignores`` them.
        """
        self.probe, self.origin = probe, origin
        self._client, self._ignores, self._advice, self._clock = client, ignores, advice, clock or SystemClock()
        self._stream_and_node = probe.stream, probe.node
        self._logged = OncePerCause()

    def note_consumer(self) -> None:
        """Note that messages of this stream are consumed at this node, in this process."""
        _consuming.add(self._stream_and_node)

    def mark(self, headers: HeadersLike | None) -> tuple[MessageIdentity | None, HeadersLike | None]:
        """Return the identity of a message that is sent, and the headers to send it with.

        The identity is for its stamp ``out``, and None where the message cannot be stamped. Pairs are read once, and
        returned as a list.
        """
        try:
            if headers is not None and not isinstance(headers, Mapping):
                headers = list(headers)
            found = message_headers.parse_headers(headers)
            if found is not None:
                return found, headers
            # Checked at each message: the consumer may be instrumented later than the producer.
            is_made_here = self._stream_and_node not in _consuming if self.origin is None else self.origin
            if not is_made_here:
                self.miss(UNMARKED, f"it has no marks: forward them with {self._advice}, or say origin=True")
                return None, headers
            made, added = message_headers.build_headers(self._clock.wall_ns() // 1_000)
            return made, [*(headers.items() if isinstance(headers, Mapping) else headers or ()), *added]
        except ValueError as error:
            self.miss(BAD_MARKS, str(error))
        except Exception:  # noqa: BLE001 - what we cannot do is not the host's trouble
            self.fail()
        return None, headers

    def stamp_arrival(
        self, headers: HeadersLike | None, topic: object, labels: Mapping[str, object] | None = None
    ) -> MessageIdentity | None:
        """Stamp ``in`` of a message that was received by a topic, and return its identity; None if it has none."""
        try:
            found = message_headers.parse_headers(headers)
        except ValueError as error:
            self.miss(BAD_MARKS, f"{error}: it came by the topic {topic}")
        except Exception:  # noqa: BLE001 - as above
            self.fail()
        else:
            if found is None:
                self.miss(UNMARKED, f"it came without marks by the topic {topic}: does its producer mark?")
            else:
                self.probe.arrived(*found, labels=labels)
            return found
        return None

    @contextmanager
    def sending(self, headers: HeadersLike | None = None) -> Iterator[dict[Any, Any]]:
        """Mark a message that is sent in the block, and stamp ``out`` when the block has ended without an exception.

        Yields the headers to send it with, whose new values are text.
        """
        found, marked = self.mark(headers)
        yield {} if marked is None else _build_texts(marked)
        if found is not None:
            self.probe.departed(*found)

    @contextmanager
    def passing(self, headers: HeadersLike | None, topic: object) -> Iterator[None]:
        """Stamp ``in`` of a message that was received, and ``out`` when the block has ended without an exception.

        What is sent in the block has the same headers.
        """
        found = self.stamp_arrival(headers, topic)
        yield
        if found is not None:
            self.probe.departed(*found)

    def fail(self) -> None:
        """Count a message that an error has kept from being stamped; the host has none of it."""
        self.probe.missed(BAD_MARKS)
        if self._logged.is_new("failed"):
            _log.warning("an instrumented client of %s failed to stamp a message", self._client, exc_info=True)

    def miss(self, cause: str, why: str) -> None:
        """Count a message that cannot be stamped, and log each cause once."""
        if cause == UNMARKED and self._ignores:
            return
        self.probe.missed(cause)
        if self._logged.is_new(cause):
            _log.warning("an instrumented client of %s cannot stamp a message: %s", self._client, why)


def _build_texts(headers: HeadersLike) -> dict[Any, Any]:
    """Build a mapping of headers, whose id and event time are text; of what are no headers, an empty one."""
    try:
        texts = dict(headers)
        for name in (ID_HEADER, TIME_HEADER):
            if isinstance(value := texts.get(name), bytes):
                texts[name] = value.decode()
    except (TypeError, ValueError):
        return dict(headers) if isinstance(headers, Mapping) else {}
    return texts


class ClientProxy:
    """Proxy of a client: what it does not do itself, the client does."""

    def __init__(self, client: Any, marker: MessageMarker) -> None:  # noqa: ANN401 - of any library
        """Stand before a client."""
        self._client, self._marker = client, marker
        self.hopwatch_probe = marker.probe

    @property  # type: ignore[misc]  # read-only here, so that isinstance goes by the client
    def __class__(self) -> type:
        """The class of the client, so that it passes for one."""
        return type(self._client)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the client has
        """Return an attribute of the client."""
        return getattr(self._client, name)

    def __repr__(self) -> str:
        """Return the text of the client."""
        return repr(self._client)

    def _mark_arguments(
        self, names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[MessageIdentity | None, tuple[Any, ...], dict[str, Any]]:
        """Return the identity of a message that is sent, and the arguments of the call with its headers among them."""
        named = dict(zip(names, args, strict=False))
        if len(args) > len(names) or named.keys() & kwargs.keys():
            # A mistake of the host is explained better by the client's own error.
            return None, args, kwargs
        named |= kwargs
        found, named["headers"] = self._marker.mark(named.get("headers"))
        return found, (), named
