"""Tests of the pipeline alone: its probes write where another monitor reads, and it ends when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from hopwatch.probes.contract import segment
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.limits import ID_BYTES
from servers.process import Process
from tests.repository import ROOT
from tests.support.spool_traffic import rest

RUN = (sys.executable, "-m", "hopwatch", "demo")


def batches(spool: Path) -> list[Batch]:
    """Return the batches that a spool holds."""
    read = [path.read_bytes() for path in sorted(spool.rglob("*.seg"))]
    return [decode(data[frame.start : frame.end]) for data in read for frame in segment.read_frames(data)]


def seen(spool: Path, node: str) -> set[bytes]:
    """Return the ids of the messages that a node saw; one whose sides fell into two batches is there once."""
    packed = b"".join(batch.message_ids for batch in batches(spool) if batch.node == node)
    return {packed[start : start + ID_BYTES] for start in range(0, len(packed), ID_BYTES)}


def test_it_writes_for_another_monitor_until_it_is_told_to_end(tmp_path: Path) -> None:
    """SIGTERM lets what is on its way arrive, and every probe says bye; there is no store and no table."""
    flags = ("--into", f"spool:{tmp_path / 'spool'}", "--rate", "200", "--workdir", str(tmp_path / "run"))
    log = tmp_path / "said"
    process = Process([*RUN, *flags], log, folder=ROOT)
    try:
        for _ in rest(60):
            if len(seen(tmp_path / "spool", "connector")) > 200:
                break
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
    said = log.read_text("utf-8")
    assert f"the probes write to spool:{tmp_path / 'spool'}, for a monitor that runs elsewhere" in said
    byes = {batch.node for batch in batches(tmp_path / "spool") if batch.kind is BatchKind.BYE}
    assert byes == {"ingest", "router", "norm", "connector"}
    entered, arrived = (seen(tmp_path / "spool", node) for node in ("ingest", "connector"))
    assert entered == arrived
    assert len(arrived) > 200
    assert not list(tmp_path.rglob("*.db"))


def test_its_own_configuration_watches_it(tmp_path: Path) -> None:
    """The other monitor may as well be one that reads the file which the run has left."""
    flags = ("--into", f"spool:{tmp_path / 'spool'}", "--rate", "200", "--minutes", "0.05")
    subprocess.run(
        [*RUN, *flags, "--workdir", str(tmp_path / "run")], cwd=ROOT, check=True, capture_output=True, timeout=120
    )
    told = (tmp_path / "run" / "hopwatch.toml").read_text("utf-8")
    assert f'url = "spool:{tmp_path / "spool"}"' in told
