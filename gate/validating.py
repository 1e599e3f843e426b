"""Whether a record that is in a topic already may enter: read by its writer's schema, held to what the gate holds to.

Nothing here knows Kafka: a record is judged by what it says and by when its topic took it, so that whoever judges it
again after a crash comes to the same end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hopwatch.gate import bodies
from hopwatch.gate.avro_body import UnresolvableError
from hopwatch.gate.bodies import EVENT_BYTES, Sent
from hopwatch.gate.codec import Codec, MisfitError
from hopwatch.gate.framing import Framing, framed
from hopwatch.gate.judging import Judged, Looked, Terms, checked, decided, plausible
from hopwatch.gate.records import Rejected
from hopwatch.gate.registry.subjects import UnknownError
from hopwatch.gate.rules import Action
from hopwatch.gate.spots import MissingError, Spots
from hopwatch.gate.versions import Versions
from hopwatch.probes.contract.ids import TextId
from hopwatch.probes.http.problems import Fault

MOST_BESIDE_BYTES: Final = 64 * 1024
"""What the key and the headers of a record have at most, so that what is written of it fits into a topic."""
_MOST_DETAIL_CHARS: Final = 300


IN_HEADERS: Final = Spots()


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it stands in a topic.

    ``where`` is ``TOPIC/PARTITION/OFFSET``; ``recorded_us`` the time that the topic has for it, µs since 1970, None
    where it has none; ``size_beside`` the bytes of key and headers.
    """

    where: str
    value: bytes | None
    headers: Mapping[str, object]
    recorded_us: int | None
    size_beside: int = 0


@dataclass(frozen=True, slots=True)
class Validating:
    """What the records of a topic are held to."""

    stream: str
    versions: Versions
    terms: Terms
    spots: Spots = IN_HEADERS
    framing: Framing = Framing.AUTO

    def judge(self, record: Record, now_us: int) -> Judged:
        """Return what becomes of a record that is read now.

        It arrived when its topic took it, so that a validator that is late does not make it old.

        Raises:
            ShelfDownError: its schema is not known yet, and the registry is down.
        """
        arrived_us = now_us if record.recorded_us is None else min(record.recorded_us, now_us)
        codec = self.versions.reader()
        faults: list[Fault] = []
        value, written = None, b""
        try:
            value, codec = self._read(record)
            written = checked(codec.write(value))
        except MisfitError as error:
            faults += error.faults
        event_id = self._id(record, value, faults)
        said_us = self._said_us(record, value, codec, faults)
        event_us = None
        if said_us is not None:
            try:
                event_us = plausible(said_us, self.terms, arrived_us)
            except ValueError as error:
                faults.append(Fault("", str(error)))
        sent = Sent(None, None, (record.value or b"")[:EVENT_BYTES])
        return decided(Looked(sent, event_id, event_us, value, written, faults, said_us), self.terms, arrived_us)

    def rejected(self, judged: Judged, record: Record, now_us: int) -> Rejected:
        """Return what is kept of a record that may not enter; of one that is too long, its beginning."""
        return Rejected(
            self.stream,
            judged.event_id,
            judged.said_us,
            now_us,
            record.where,
            judged.sent.data,
            judged.faults,
            is_held=judged.action is Action.QUARANTINE,
            owns_id=judged.owns_id,
        )

    def _read(self, record: Record) -> tuple[Any, Codec]:
        """Return the value of a record, and the codec that writes it.

        Raises:
            MisfitError: it has none.
        """
        if record.size_beside > MOST_BESIDE_BYTES:
            told = f"key and headers have at most {MOST_BESIDE_BYTES:,} bytes, got {record.size_beside:,}"
            raise _misfit(f"{told}: they are left out")
        if record.value is None:
            raise _misfit("the record has no value")
        data = checked(record.value)
        try:
            found = framed(data, self.framing)
            if found is None:
                if faults := bodies.repeats(data):
                    raise MisfitError(faults)  # noqa: TRY301 - one sentence of many
                codec = self.versions.reader()
                return codec.read(data), codec
            resolution, codec = self.versions.resolution(found.writer)
            return resolution.read(data, found.at), codec
        except UnresolvableError as error:
            raise _misfit(str(error), error.place) from None
        except UnknownError as error:
            raise _misfit(f"{error}: nobody registered what wrote it") from None
        except MisfitError:
            raise
        except ValueError as error:
            raise _misfit(str(error)) from None

    def _id(self, record: Record, value: object, faults: list[Fault]) -> bytes:
        if value is None and self.spots.id_path is not None:
            return TextId.of(record.where)
        try:
            return self.spots.event_id(value, record.headers, record.where)
        except MissingError as error:
            faults.append(Fault(error.place, str(error)))
            return TextId.of(record.where)

    def _said_us(self, record: Record, value: object, codec: Codec, faults: list[Fault]) -> int | None:
        """Return the event time that is said, None where there is none."""
        if value is None and self.spots.time_path is not None:
            return None
        try:
            return self.spots.event_us(value, record.headers, record.recorded_us, codec.schema)
        except MissingError as error:
            faults.append(Fault(error.place, str(error)))
        except ValueError as error:
            faults.append(Fault("", str(error)))
        return None


def _misfit(told: str, place: str = "") -> MisfitError:
    return MisfitError((Fault(place, told[:_MOST_DETAIL_CHARS]),))
