"""The gate without validation: all of it as it is, but an event's data is written as the bytes that came."""

from __future__ import annotations

from hopwatch.gate import codec_cache
from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.probes.contract.envelope import MARKER


class BareCodec(Codec):
    """Reads nothing of an event, and writes its JSON behind the envelope's first bytes."""

    def __init__(self, schema: Schema) -> None:
        """Take the schema for its fingerprint."""
        super().__init__(schema)
        self._before = bytes([MARKER]) + schema.fingerprint

    def parse_json(self, event: bytes) -> bytes:
        """Return the bytes."""
        return event

    def encode_value(self, value: bytes) -> bytes:
        """Return the bytes behind the envelope's first."""
        return self._before + value


def take_all() -> None:
    """Let the gate of this process take whatever comes."""
    # The gate has no seam for it, and needs none.
    vars(codec_cache)["Codec"] = BareCodec
