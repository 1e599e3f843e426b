"""Tests of the pipeline alone: its probes write where another monitor reads, and it ends when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from probes.contract import segment
from probes.contract.batch import Kind
from probes.contract.envelope import decode
from tests.e2e.traffic import rest
from tests.real.servers.process import Process
from tests.repository import ROOT

RUN = (sys.executable, "-m", "monitor.cli.main", "demo")


def batches(spool: Path) -> list[tuple[str, Kind, int]]:
    """Return what each record of a spool says: node, kind and how many observations."""
    read = [path.read_bytes() for path in sorted(spool.rglob("*.seg"))]
    records = [decode(data[frame.start : frame.end]) for data in read for frame in segment.walk(data)]
    return [(record.node, record.kind, record.count) for record in records]


def seen(spool: Path, node: str) -> int:
    """Return how many observations of a node a spool holds."""
    return sum(count for one, _, count in batches(spool) if one == node)


def test_it_writes_for_another_monitor_until_it_is_told_to_end(tmp_path: Path) -> None:
    """SIGTERM lets what is on its way arrive, and every probe says bye; there is no store and no table."""
    flags = ("--into", f"spool:{tmp_path / 'spool'}", "--rate", "200", "--workdir", str(tmp_path / "run"))
    log = tmp_path / "said"
    process = Process([*RUN, *flags], log, folder=ROOT)
    try:
        for _ in rest(60):
            if seen(tmp_path / "spool", "connector") > 200:
                break
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
    said = log.read_text("utf-8")
    assert f"the probes write to spool:{tmp_path / 'spool'}, for a monitor that runs elsewhere" in said
    told = batches(tmp_path / "spool")
    assert {node for node, kind, _ in told if kind is Kind.BYE} == {"ingest", "router", "norm", "connector"}
    assert seen(tmp_path / "spool", "ingest") == seen(tmp_path / "spool", "connector") > 200
    assert not list(tmp_path.rglob("*.db"))


def test_its_own_configuration_watches_it(tmp_path: Path) -> None:
    """The other monitor may as well be one that reads the file which the run has left."""
    flags = ("--into", f"spool:{tmp_path / 'spool'}", "--rate", "200", "--minutes", "0.05")
    subprocess.run(
        [*RUN, *flags, "--workdir", str(tmp_path / "run")], cwd=ROOT, check=True, capture_output=True, timeout=120
    )
    told = (tmp_path / "run" / "hopwatch.toml").read_text("utf-8")
    assert f'url = "spool:{tmp_path / "spool"}"' in told
