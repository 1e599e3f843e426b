"""A broker in this process, and a producer by librdkafka's own interface: it sends what confluent-kafka refuses to."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient

PATIENCE_S: Final = 20.0
_PATIENCE_MS: Final = int(PATIENCE_S * 1_000)
_TOPIC, _VALUE, _HEADERS, _END = 1, 4, 10, 0
"""What the arguments of ``rd_kafka_producev`` are."""

RawHeaders = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class RawCluster:
    """One broker, of librdkafka's own mock."""

    brokers: str

    def read_back(self, value: bytes, headers: RawHeaders, topic: str = "t") -> Message:
        """Return a record as a consumer gets it, with headers of any names."""
        produce_raw(self.brokers, topic, value, headers)
        consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": "g"})
        numbers = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        try:
            (message,) = consumer.consume(1, PATIENCE_S)
        finally:
            consumer.close()
        assert message.error() is None
        return message


@contextmanager
def raw_cluster() -> Iterator[RawCluster]:
    """Yield a cluster."""
    admin = AdminClient({"test.mock.num.brokers": "1", "log_level": 0})
    (broker,) = admin.list_topics(timeout=PATIENCE_S).brokers.values()
    yield RawCluster(f"{broker.host}:{broker.port}")


def produce_raw(brokers: str, topic: str, value: bytes, headers: RawHeaders) -> None:
    """Produce a record with headers of any names."""
    library = _load_library()
    config, said = library.rd_kafka_conf_new(), ctypes.create_string_buffer(512)
    pairs = ((b"bootstrap.servers", brokers.encode()), (b"log_level", b"0"))
    for name, text in pairs:
        library.rd_kafka_conf_set(ctypes.c_void_p(config), name, text, said, ctypes.c_size_t(512))
    client = ctypes.c_void_p(library.rd_kafka_new(0, ctypes.c_void_p(config), said, ctypes.c_size_t(512)))
    assert client.value, said.value
    sent = ctypes.c_void_p(library.rd_kafka_headers_new(ctypes.c_size_t(len(headers))))
    for raw, content in headers:
        sizes = ctypes.c_ssize_t(len(raw)), ctypes.c_ssize_t(len(content))
        library.rd_kafka_header_add(sent, raw, sizes[0], content, sizes[1])
    taken = [ctypes.c_int(_TOPIC), topic.encode(), ctypes.c_int(_VALUE), value, ctypes.c_size_t(len(value))]
    assert not library.rd_kafka_producev(client, *taken, ctypes.c_int(_HEADERS), sent, ctypes.c_int(_END))
    assert not library.rd_kafka_flush(client, _PATIENCE_MS)
    library.rd_kafka_destroy(client)


def _load_library() -> ctypes.CDLL:
    """Return the library that confluent-kafka itself has loaded."""
    folder = Path(confluent_kafka.__file__).parent
    pattern = "../confluent_kafka.libs/librdkafka*.so*" if sys.platform == "linux" else ".dylibs/librdkafka*.dylib"
    library = ctypes.CDLL(str(next(folder.glob(pattern))))
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(library, name).restype = ctypes.c_void_p
    return library
