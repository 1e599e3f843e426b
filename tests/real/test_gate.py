"""The gate as it is served: over a store, for clients of Confluent's registry, with a real topic."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from servers.kafka import Kafka
from servers.process import Process, answers, free_ports, until
from tests.real.gate_command import RUN
from tests.repository import ROOT
from tests.support.gate_client import CONFIG
from tests.support.program import ProgramProcess
from tests.support.schemas import BROKEN, FIRST, SECOND

CASES: Final = (8, 100)
"""Requests of each kind that are made of the OpenAPI document, as a rule and with --soak."""


def text(said: Any) -> str:  # noqa: ANN401 - a schema
    """Return a schema as text."""
    return orjson.dumps(said).decode()


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, Process]]:
    """Yield the URL of a gate over a store in a folder, and its process."""
    config = folder / "hopwatch.toml"
    config.write_text(CONFIG, "utf-8")
    (port,) = free_ports(1)
    process = ProgramProcess([*RUN, "--config", str(config), "--port", str(port)], folder / "said", folder=ROOT)
    try:
        until(lambda: answers(port), "the gate answers")
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a gate over an empty store."""
    with served(tmp_path) as (found, _):
        yield found


def test_what_was_registered_is_there_after_a_kill(tmp_path: Path) -> None:
    """SIGKILL loses nothing that was answered; SIGTERM ends it with 0."""
    with served(tmp_path) as (url, process):
        told = httpx.put(f"{url}/subjects/orders/schemas", json=FIRST).json()
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    with served(tmp_path) as (url, process):
        assert httpx.get(f"{url}/subjects/orders/schemas/latest").json() == told
        assert httpx.get(f"{url}/readyz").json() == {"status": "ok"}
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 0
    assert f"the gate is at {url}/, which needs no token" in (tmp_path / "said").read_text("utf-8")


def test_clients_of_confluents_registry_know_it(url: str) -> None:
    """Registering, looking up, asking about compatibility and setting it, with the client as it comes."""
    client = SchemaRegistryClient({"url": url})
    first = Schema(text(FIRST), "AVRO")
    number = client.register_schema("orders-value", first)
    assert client.register_schema("orders-value", first) == number
    assert client.get_schema(number).schema_str == text(FIRST)
    assert client.get_subjects() == ["orders-value"]
    found = client.lookup_schema("orders-value", first)
    assert (found.schema_id, found.version, found.subject) == (number, 1, "orders-value")
    assert client.test_compatibility("orders-value", Schema(text(SECOND), "AVRO"))
    assert not client.test_compatibility("orders-value", Schema(text(BROKEN), "AVRO"))
    with pytest.raises(SchemaRegistryError, match="the field is new, of type int, and has no default") as caught:
        client.register_schema("orders-value", Schema(text(BROKEN), "AVRO"))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 409)
    client.register_schema("orders-value", Schema(text(SECOND), "AVRO"))
    assert client.get_versions("orders-value") == [1, 2]
    assert client.get_latest_version("orders-value").version == 2
    assert client.get_version("orders-value", 1).schema_id == number
    client.set_compatibility("orders-value", "NONE")
    assert client.get_compatibility("orders-value") == "NONE"
    with pytest.raises(SchemaRegistryError) as caught:
        client.get_latest_version("nobody")
    assert caught.value.error_code == 40401


def test_values_of_a_real_topic_are_read_by_its_schemas(url: str, kafka: Kafka) -> None:
    """AvroSerializer and AvroDeserializer as they come: what an old schema wrote, a new one reads with its default."""
    kafka.create_topic("gate-values", 1)
    client = SchemaRegistryClient({"url": url})
    context = SerializationContext("gate-values", MessageField.VALUE)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all"})
    for said, value in ((FIRST, {"a": 1}), (SECOND, {"a": 2, "b": 3})):
        producer.produce("gate-values", AvroSerializer(client, text(said))(value, context))
    producer.flush(30)
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": "gate-values", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["gate-values"])
    reading = AvroDeserializer(client, text(SECOND))
    try:
        values = [message.value() or b"" for message in (consumer.poll(30.0) for _ in range(2)) if message is not None]
        assert [reading(value, context) for value in values] == [{"a": 1, "b": 7}, {"a": 2, "b": 3}]
    finally:
        consumer.close()
    assert client.get_subjects() == ["gate-values-value"]


def test_no_request_of_the_document_makes_a_fault(url: str, tmp_path: Path, times: Callable[[int, int], int]) -> None:
    """All checks of schemathesis hold for requests made from the OpenAPI document, valid or not."""
    anything = {"type": "map", "values": ["null", "boolean", "double", "string"]}
    assert httpx.put(f"{url}/subjects/orders/schemas", json=anything).status_code == 201
    config = tmp_path / "schemathesis.toml"
    config.write_text(
        # That a text is a schema of Avro, a subject is there, an event is of now and fits, no JSON schema says.
        "[checks.positive_data_acceptance]\nexpected-statuses = [200, 201, 202, 207, 404, 409, 422]\n"
        # Whoever asks for a status of each event is told of bad ones there.
        "[checks.negative_data_rejection]\n"
        "expected-statuses = [207, 400, 401, 403, 404, 405, 406, 409, 415, 422, 503]\n",
        "utf-8",
    )
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", f"{url}/openapi.json"),
            *("--checks", "all", "--max-examples", str(times(*CASES)), "--seed", "1", "--no-color"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=3_000,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-6_000:] + run.stderr[-2_000:]
