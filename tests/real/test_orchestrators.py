"""Sensors and a query in real installs of Airflow, Dagster and dbt, in an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from hopwatch.api.contract_webhooks.events import build_lineage_event
from servers.postgres import PASSWORD, USER, Postgres
from servers.process import PATIENCE_S, answers, free_ports, until
from tests.repository import ROOT
from tests.support import page_blocks
from tests.support.program import Program
from tests.support.spool import START_US
from tests.support.workspace import CONFIGURATION, CONTRACTS, Workspace, one_of_ten_lost

PYTHON: Final = ROOT / ".venv-orchestrators" / "bin" / "python"
PAGE: Final = "docs/ORCHESTRATORS.md"
DAG: Final = """
from datetime import datetime, timezone
from os import environ as asked
from airflow.sdk import DAG
from hopwatch.integrations.airflow import CompletenessSensor

with DAG("hop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)) as dag:
    CompletenessSensor(
        task_id="wait", contract=asked["CONTRACT"], until=asked["UNTIL"], deferrable=asked["DEFERRABLE"] == "True",
        soft_fail=asked["SOFT"] == "True", timeout=float(asked["TIMEOUT"]), poke_interval=0.5,
    )
"""
LINEAGE: Final = """
import json
from pathlib import Path
from openlineage.client.event_v2 import InputDataset, Job, Run, RunEvent, RunState
from openlineage.client.generated.data_quality_assertions_dataset import Assertion, DataQualityAssertionsDatasetFacet
from openlineage.client.generated.data_quality_metrics_input_dataset import DataQualityMetricsInputDatasetFacet
from openlineage.client.generated.nominal_time_run import NominalTimeRunFacet
from openlineage.client.serde import Serde

ours = json.loads(Path("event.json").read_text())
producer, times = ours["producer"], ours["run"]["facets"]["nominalTime"]
assertions = [Assertion(assertion=name, success=True) for name in ("complete", "lost_below")]
facets = {
    "dataQualityAssertions": DataQualityAssertionsDatasetFacet(assertions=assertions, producer=producer),
    "dataQualityMetrics": DataQualityMetricsInputDatasetFacet(rowCount=10, columnMetrics={}, producer=producer),
}
times = NominalTimeRunFacet(times["nominalStartTime"], times["nominalEndTime"], producer=producer)
theirs = RunEvent(
    eventType=RunState.COMPLETE, eventTime=ours["eventTime"], producer=producer,
    run=Run(runId=ours["run"]["runId"], facets={"nominalTime": times}), outputs=[],
    job=Job(namespace="hopwatch", name="completeness.hourly"),
    inputs=[InputDataset(namespace="hopwatch", name="orders", inputFacets=facets)],
)


def without_nothing(value):
    if isinstance(value, dict):
        kept = {name: without_nothing(one) for name, one in value.items()}
        return {name: one for name, one in kept.items() if one not in (None, {}, [])}
    return [without_nothing(one) for one in value] if isinstance(value, list) else value


theirs = without_nothing(json.loads(Serde.to_json(theirs)))
ours = without_nothing(ours)
print("THE SAME" if ours == theirs else f"OURS {ours} THEIRS {theirs}")
"""
SENSOR: Final = """
import sys
from datetime import datetime, timedelta, timezone
from dagster import DagsterInstance, EnvVar, RunRequest, build_sensor_context, job, op
from hopwatch.integrations.dagster import build_completeness_sensor

@op
def bill(): ...

@job
def bill_the_hour():
    bill()

made = build_completeness_sensor(
    contract=sys.argv[1], first_until=datetime(2026, 1, 1, 0, 1, tzinfo=timezone.utc), every=timedelta(minutes=1),
    url=sys.argv[2], token=EnvVar("HOPWATCH_TOKEN"), job=bill_the_hour,
)
cursor = None
for _ in range(2):
    with DagsterInstance.ephemeral() as instance, build_sensor_context(instance, cursor=cursor) as context:
        data = made.evaluate_tick(context)
        print("RUNS", [(one.run_key, one.tags["hopwatch/until"]) for one in data.run_requests], data.skip_message)
        cursor = data.cursor
"""

COPY: Final = """
INSERT INTO windows SELECT (jsonb_populate_record(
    one, jsonb_build_object('window_start_us', {start_us}, 'verdict', 'COMPLETE'))).* FROM windows one
"""

pytestmark = pytest.mark.soak  # tests/client/test_sensors.py has the question that both ask


@pytest.fixture(autouse=True)
def orchestrators() -> None:
    """Fail with the command that installs them where one is missing."""
    if not all(PYTHON.with_name(name).exists() for name in ("airflow", "dagster", "dbt")):
        pytest.fail("Airflow, Dagster and dbt are not installed beside Hopwatch: make orchestrators")


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Yield the port of an API over a store in which one of ten messages of the first minute is lost."""
    place = Workspace(tmp_path).configure(CONFIGURATION + CONTRACTS).watch(*one_of_ten_lost())
    (number,) = free_ports(1)
    process = Program(["hopwatch", "api", "--config", str(place.config), "--port", str(number)], folder=ROOT)
    try:
        until(lambda: answers(number), "the API answers")
        yield number
    finally:
        process.kill()
        process.wait()


def run(folder: Path, *command: str, **asked: object) -> str:
    """Run a command where the orchestrators are, with more variables, and return what it prints."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT / "src"),
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "DAGSTER_HOME": str(folder),
        "HOPWATCH_TOKEN": "",
    }
    done = subprocess.run(
        [str(PYTHON), *command],
        env=environ | {name: str(value) for name, value in asked.items()},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("contract", "moment", "soft", "timeout_s", "state", "words"),
    [
        ("loose", "2026-01-01T00:01:00Z", False, 60, "success", "loose: orders until 2026-01-01T00:01:00Z is complete"),
        ("strict", "2026-01-01T00:01:00Z", False, 60, "failed", "1 messages are surely lost"),
        ("strict", "2026-01-01T00:01:00Z", True, 60, "skipped", "1 messages are surely lost"),
        ("nix", "2026-01-01T00:01:00Z", False, 60, "failed", "nix: the API refuses: 404"),
        ("loose", "2026-01-01T08:00:00Z", False, 2, "failed", "is pending: "),
    ],
)
def test_airflow_waits_for_a_contract(
    tmp_path: Path,
    port: int,
    contract: str,
    moment: str,
    soft: bool,  # noqa: FBT001 - a case
    timeout_s: int,
    state: str,
    words: str,
) -> None:
    """In a worker and deferred: it succeeds, fails or is skipped; the scheduler bounds how long a task is deferred."""
    (tmp_path / "airflow" / "dags").mkdir(parents=True)
    (tmp_path / "airflow" / "dags" / "hop.py").write_text(DAG)
    run(tmp_path, "-m", "airflow", "db", "migrate")
    api = json.dumps({"conn_type": "http", "host": "127.0.0.1", "port": port, "schema": "http"})
    for deferrable in (False, True) if timeout_s > 2 else (False,):
        asked = {"CONTRACT": contract, "UNTIL": moment, "DEFERRABLE": deferrable, "SOFT": soft, "TIMEOUT": timeout_s}
        said = run(tmp_path, "-m", "airflow", "dags", "test", "hop", AIRFLOW_CONN_HOPWATCH_DEFAULT=api, **asked)
        assert words in said
        assert f"new_state={state}" in said, said


def test_an_event_of_openlineage_is_the_one_that_its_package_builds(tmp_path: Path) -> None:
    """Field for field: run, job, stream and facets, with the addresses of their schemas."""
    span = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-01T01:00:00Z", "revisions": 0, "in_flight": 0}
    counts = {"known": 10, "lost_lower": 0, "lost_upper": 0, "blocked": [], "state": "complete"}
    answer = {"contract": "hourly", "stream": "orders", **span, **counts}
    (tmp_path / "event.json").write_bytes(build_lineage_event(answer, "", START_US))
    (tmp_path / "program.py").write_text(LINEAGE)
    assert "THE SAME" in run(tmp_path, "program.py")


def test_dagster_requests_a_run_for_each_complete_span(tmp_path: Path, port: int) -> None:
    """Once each, with its moment; one that is not complete is a reason to skip, and holds up those behind it."""
    (tmp_path / "program.py").write_text(SENSOR)
    said = run(tmp_path, "program.py", "loose", f"http://127.0.0.1:{port}")
    runs = [line for line in said.splitlines() if line.startswith("RUNS")]
    assert len(runs) == 2, said
    first, second = runs
    assert "('loose/2026-01-01T00:01:00Z', '2026-01-01T00:01:00Z')" in first
    assert "loose/2026-01-01T00:01:00Z" not in second
    said = run(tmp_path, "program.py", "strict", f"http://127.0.0.1:{port}")
    assert "RUNS [] strict: orders until 2026-01-01T00:01:00+00:00" in said.replace("Z is", "+00:00 is")
    assert "1 messages are surely lost" in said


def ask_freshness(project: Path) -> tuple[str, float]:
    """Return the state of the only source of a project of dbt, and the moment up to which it is fresh."""
    said = run(project, "-m", "dbt.cli.main", "source", "freshness", "--no-send-anonymous-usage-stats")
    written = project / "target" / "sources.json"
    assert written.exists(), said
    (found,) = json.loads(written.read_text())["results"]
    return found["status"], datetime.fromisoformat(found["max_loaded_at"]).timestamp()


def test_dbt_asks_how_fresh_a_stream_is(tmp_path: Path, postgres: Postgres) -> None:
    """With the page's query: up to the first lossy minute of a day, or to the newest one where none is lossy."""
    url = postgres.database()
    database = url.rpartition("/")[2]
    place = Workspace(tmp_path).configure(CONFIGURATION.replace("sqlite:///./store.db", url))
    place.watch(*one_of_ten_lost())
    lossy_us = int(time.time()) // 60 * 60_000_000 - 40 * 60_000_000
    postgres.ask(f"UPDATE windows SET window_start_us = {lossy_us}", database)  # noqa: S608 - a number
    newest_us = lossy_us + 35 * 60_000_000
    postgres.ask(COPY.format(start_us=newest_us), database)
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text("name: hop\nversion: 1.0.0\nprofile: hop\n")
    (tmp_path / "models" / "sources.yml").write_text(page_blocks.of(page_blocks.page(PAGE), "yaml")[0])
    where = {"host": "127.0.0.1", "port": postgres.port, "dbname": database, "schema": "public"}
    output = {"type": "postgres", "user": USER, "password": PASSWORD, "threads": 1, **where}
    (tmp_path / "profiles.yml").write_text(json.dumps({"hop": {"target": "test", "outputs": {"test": output}}}))
    assert ask_freshness(tmp_path) == ("warn", lossy_us / 1e6)
    postgres.ask("UPDATE windows SET verdict = 'COMPLETE'", database)
    assert ask_freshness(tmp_path) == ("pass", newest_us / 1e6 + 60)
