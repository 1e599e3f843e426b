"""Apache Avro's own checker, that of Java, which Spark brings along: the oracle of compatibility."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.java_gateway import launch_gateway


class Checker:
    """``org.apache.avro.SchemaCompatibility``."""

    def __init__(self, jvm: Any) -> None:  # noqa: ANN401 - py4j has no types
        """Take the machine that it runs in."""
        self._avro = jvm.org.apache.avro

    def reads(self, reader: str, writer: str) -> bool:
        """Return whether one schema, JSON, reads what another writes."""
        parsed = [self._avro.Schema.Parser().parse(text) for text in (reader, writer)]
        found = self._avro.SchemaCompatibility.checkReaderWriterCompatibility(*parsed)
        return bool(found.getType().toString() == "COMPATIBLE")

    def fingerprint(self, text: str) -> bytes:
        """Return the SHA-256 of a schema's canonical form."""
        schema = self._avro.Schema.Parser().parse(text)
        return bytes(self._avro.SchemaNormalization.parsingFingerprint("SHA-256", schema))


@contextmanager
def checker() -> Iterator[Checker]:
    """Yield it; its process ends with it."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    try:
        yield Checker(gateway.jvm)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
