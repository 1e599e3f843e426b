"""``kill -9`` between "send" and "sent": a real process dies, the next one sends again under the same key."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from hopwatch.alerts.events import Event
from hopwatch.alerts.storage.outbox import Delivery
from tests.alerts.notifications import notification
from tests.alerts.receiver import Receiver
from tests.alerts.storage.test_outbox import RESOLVED, put, states
from tests.monitor.manual_clock import ManualClock


def run(engine: Engine, file: Path, dies_at: int, *alertmanager: str) -> int:
    """Run a dispatcher's process until it is killed, or nothing is due; return how it ended."""
    url = engine.url.render_as_string(hide_password=False)
    command = [
        sys.executable,
        "-m",
        "tests.alerts.delivery.dying_dispatcher",
        url,
        str(file),
        str(dies_at),
        *alertmanager,
    ]
    return subprocess.run(command, check=False, timeout=60).returncode


@pytest.mark.parametrize("dies_at", [1, 2])
def test_what_was_sent_and_not_noted_is_sent_again_under_the_same_key(
    dies_at: int, engine: Engine, tmp_path: Path
) -> None:
    """The receiver hears it twice, and has one incident, which ends."""
    put(engine, notification(), RESOLVED)
    file = tmp_path / "heard"
    assert run(engine, file, dies_at) == -signal.SIGKILL
    assert states(engine)["pager", "waiting"] == 3 - dies_at
    assert run(engine, file, 0) == 0
    heard = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    begun, ended = [["loss/page/orders", event] for event in ("firing", "resolved")]
    assert heard == ([begun, begun, ended] if dies_at == 1 else [begun, ended, ended])
    receiver = Receiver(ManualClock())
    for _, event in heard:
        said = notification(Event(event))
        receiver.hear(Delivery(0, "pager", said, 0, tries=0, is_again=False, is_acknowledged=False), 0)
    assert (receiver.opened, receiver.open) == ({"loss/page/orders": 1}, set())
