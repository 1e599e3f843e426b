"""``hopwatch validate kafka`` on a real broker, where records wait for their schema, and validators are killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path as Folder

import orjson
import pytest

from hopwatch.cli.main import main
from hopwatch.gate.codec import Codec
from servers.kafka import Kafka
from servers.process import PATIENCE_S, until
from tests.real.validators import BODY, PARTITIONS, Place, id_of
from tests.support.schemas import FIRST, SECOND, Json, schema

LATE = {**SECOND, "fields": [*SECOND["fields"], {"name": "late", "type": "int"}]}
NEVER = {**SECOND, "fields": [*SECOND["fields"], {"name": "never", "type": "int"}]}
COUNT = 60


def test_records_wait_for_their_schema_and_enter_once(kafka: Kafka, tmp_path: Folder) -> None:
    """Over a topic that is missing or weak first, and SIGKILL while they are put there and while they enter."""
    place = Place(kafka, "held", tmp_path)
    waiting = f"{place.name}.waiting"
    keys = f'unknown_schema = "hold"\nwaiting = "{kafka.url(waiting)}"\nrejected ='
    place.config.write_text(place.config.read_text().replace("rejected =", keys))

    def refused() -> str:
        with place.running() as process:
            assert process.wait(PATIENCE_S) == 3
        return place.said().splitlines()[-1]

    advice = "make it with 'hopwatch validate create-topics orders'"
    assert refused() == f"hopwatch: the topic {waiting} is not on {kafka.bootstrap}: {advice}"
    made = ["--replication", "1", "--min-insync", "1", "--allow-weak", "--config", str(place.config)]
    assert main(["validate", "create-topics", "orders", *made]) == 0
    assert "or pass --allow-weak" in refused()

    def held() -> list[int]:
        return [int(id_of(one)) for one in place.read(waiting, 0, 1.0)]

    for number in range(COUNT):
        said = (FIRST, LATE, NEVER)[number // PARTITIONS % 3]
        names = [field["name"] for field in said["fields"]]
        value = {name: number if name == "a" else 1 for name in names}
        place.send(place.framed(said, value), number, partition=number % PARTITIONS, key=b"%d" % number)
    place.sent()
    late = {number for number in range(COUNT) if number // PARTITIONS % 3 == 1}
    never = {number for number in range(COUNT) if number // PARTITIONS % 3 == 2}
    with place.running("--allow-weak") as killed:
        until(lambda: "is not registered: its records wait" in place.said(), "it puts them to wait")
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    with place.running("--allow-weak") as killed:
        known = {int(id_of(one)) for one in place.good(COUNT - len(late | never))}
        assert known == set(range(COUNT)) - late - never
        until(lambda: Counter(held()) == Counter(late | never), "the others wait")
        file = tmp_path / "late.avsc"
        file.write_bytes(orjson.dumps(LATE))
        asked = ["schema", "register", "--config", str(place.config), "--subject", "others", str(file)]
        assert main(asked) == 0
        until(lambda: "is registered now" in place.said(), "it knows the schema")
        time.sleep(0.02)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    with place.running("--allow-weak") as last:
        entered = Counter(int(id_of(one)) for one in place.good(COUNT - len(never)))
        assert entered == Counter(set(range(COUNT)) - never), place.said()
        # All may have entered before the kill, and this one have just been started.
        until(lambda: place.said().count(": validating kafka://") == 3, "the last one has begun")
        counts = place.stop(last)
    assert counts["read"] + counts["released"] == counts["validated"] + counts["rejected"] + counts["held"]
    assert place.read(f"{place.name}.bad", 1, 1.0) == []
    place.close()


@contextmanager
def registry_of(schemas: dict[int, Json]) -> Iterator[str]:
    """Yield the URL of a schema registry that knows what stands in ``schemas`` at the moment, by id."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = int(next(part for part in self.path.split("/") if part.isdigit()))
            known = number in schemas
            said: object = {"error_code": 40403, "message": "Schema not found"}
            if known:
                is_name = self.path.rstrip("/").endswith("versions")
                name = [{"subject": "others", "version": number}]
                said = name if is_name else {"schema": orjson.dumps(schemas[number]).decode()}
            body = orjson.dumps(said)
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.soak  # the test above shows the holding, test_validate.py shows two of a group
def test_two_of_a_group_hold_what_another_registry_does_not_know(kafka: Kafka, tmp_path: Folder) -> None:
    """One comes while records wait, one is killed, then the schema is registered: all enter once."""
    place = Place(kafka, "shared-held", tmp_path)
    waiting = f"{place.name}.waiting"
    keys = f'unknown_schema = "hold"\nwaiting = "{kafka.url(waiting)}"\nrejected ='
    place.config.write_text(place.config.read_text().replace("rejected =", keys))
    made = ["--replication", "1", "--min-insync", "1", "--allow-weak", "--config", str(place.config)]
    assert main(["validate", "create-topics", "orders", *made]) == 0
    schemas = {1: FIRST}

    def send(numbers: range) -> None:
        for number in numbers:
            of_id = 1 + 6 * (number // PARTITIONS % 2)
            said = LATE if of_id == 7 else FIRST
            value = {field["name"]: number if field["name"] == "a" else 1 for field in said["fields"]}
            body = Codec(schema(said)).encode(orjson.dumps(value))[BODY:]
            place.send(b"\0" + of_id.to_bytes(4, "big") + body, number, partition=number % PARTITIONS)
        place.sent()

    with registry_of(schemas) as url:
        flags = ("--allow-weak", "--framing", "confluent", "--registry", url)
        with place.running(*flags) as first:
            send(range(COUNT))
            known = {int(id_of(one)) for one in place.good(COUNT // 2)}
            assert known == {number for number in range(COUNT) if number // PARTITIONS % 2 == 0}
            with place.running(*flags) as second:
                until(lambda: len(place.dealt_out()) == 2, "both have partitions")
                send(range(COUNT, 2 * COUNT))
                place.good(COUNT)
                os.kill(first.pid, signal.SIGKILL)
                first.wait()
                schemas[7] = LATE
                entered = Counter(int(id_of(one)) for one in place.good(2 * COUNT))
                assert entered == Counter(range(2 * COUNT)), place.said()
                counts = place.stop(second)
    assert counts["rejected"] == 0
    assert place.read(f"{place.name}.bad", 1, 1.0) == []
    place.close()
