"""The demo pages a real Alertmanager: one alert that names the node, soon after FINAL, over when the drop is."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.demo.configuration import SETTLE_S, TRANSIT_S
from servers.process import Process
from tests.support.pager import Paging, paging

PATIENCE_S: Final = 420
HOPWATCH: Final = (sys.executable, "-m", "hopwatch")
DEMO: Final = "demo --drop router=0.02 --heal-after 45 --minutes 2.75 --rate 300 --no-dashboard"
WINDOW_S: Final = 60


def seen(process: Process, pages: Paging, log: Path) -> tuple[dict[float, list[dict[str, Any]]], float]:
    """Return the alerts of losses at each moment of a run, as they changed; and when its first window was FINAL."""
    found: dict[float, list[dict[str, Any]]] = {}
    final_s = math.inf
    give_up_s = time.monotonic() + PATIENCE_S
    while process.is_alive and time.monotonic() < give_up_s:
        alerts = pages.alerts()
        if not found or [one["fingerprint"] for one in alerts] != [
            one["fingerprint"] for one in next(reversed(found.values()))
        ]:
            found[time.time()] = alerts
        if final_s == math.inf and " FINAL " in log.read_text():
            final_s = time.time()
        time.sleep(0.5)
    return found, final_s


@pytest.mark.soak  # tests/real/test_compose_alerts.py pages of a demo by default
def test_a_drop_at_one_node_is_one_alert_that_names_it_and_ends(tmp_path: Path) -> None:
    """Exactly one, within one window after FINAL; it is resolved by the first good window behind the drop."""
    folder = tmp_path / "demo"
    with paging(tmp_path / "alertmanager") as pages:
        command = [*HOPWATCH, *DEMO.split(), "--workdir", str(folder), "--alertmanager", pages.server.url]
        process = Process(command, tmp_path / "demo.log")
        try:
            found, final_s = seen(process, pages, tmp_path / "demo.log")
            exit_code = process.exit_code
        finally:
            process.stop(60)
        assert exit_code == 0, (tmp_path / "demo.log").read_text()
        told = pages.await_told(2)
    assert told == {("firing", "flights"): 1, ("resolved", "flights"): 1}
    moments = [at_s for at_s, alerts in found.items() if alerts]
    ((alert,),) = (found[at_s] for at_s in moments)
    assert alert["annotations"]["node"] == "router"
    assert alert["annotations"]["summary"].startswith("lost: ")
    first_s = datetime.fromisoformat(alert["startsAt"]).timestamp()
    assert first_s + WINDOW_S + TRANSIT_S + SETTLE_S <= moments[0] <= final_s + WINDOW_S
    assert history(folder) == [("resolved", "loss/page/flights"), ("firing", "loss/page/flights")]


def history(folder: Path) -> list[tuple[str, str]]:
    """Return what the monitor has told of losses, the newest first."""
    asked = ["alerts", "history", "--json", "--config", str(folder / "hopwatch.toml")]
    command = [*HOPWATCH, *asked]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
    return [(one["event"], one["key"]) for one in said["notifications"] if one["kind"] == "loss"]
