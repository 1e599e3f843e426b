"""``hopwatch validate kafka`` on a real broker, where records wait for their schema, and validators are killed."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path as Folder

import orjson

from hopwatch.cli.main import main
from servers.kafka import Kafka
from servers.process import PATIENCE_S, until
from tests.real.validators import PARTITIONS, Place, id_of
from tests.support.schemas import FIRST, SECOND

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
