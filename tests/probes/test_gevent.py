"""Tests of hosts whose threads gevent makes greenlets, before the probe is imported or behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hopwatch.probes.contract.batch import BatchKind
from tests.support.probe_host import HOST, numbers, run, spooled

PATCH: Final = "from gevent import monkey\nmonkey.patch_all()\n"
BEFORE: Final = PATCH + HOST
BEHIND: Final = HOST + PATCH
"""The probe is there, with a thread of the system, when its host is patched."""
IN_BETWEEN: Final = HOST.replace("NOW_US", f"{PATCH}NOW_US")
"""The package is there when its host is patched, and the probe is not."""
STAMPS: Final = 20 * 500
STAMP: Final = """
import gevent
def handle(first):
    for number in range(first, first + 500):
        probe.arrived(number, NOW_US)
        gevent.sleep(0)
gevent.joinall([gevent.spawn(handle, 500 * number) for number in range(20)], raise_error=True)
"""
HOSTS: Final = pytest.mark.parametrize("host", [BEFORE, IN_BETWEEN, BEHIND], ids=["before", "in between", "behind"])


@HOSTS
@pytest.mark.parametrize("end", ["", "probe.close()", "assert probe.flush(20)", "sys.exit(0)"])
def test_greenlets_that_stamp_lose_nothing(tmp_path: Path, host: str, end: str) -> None:
    """All that 20 of them stamped at once is there once, and the bye, however the host ends."""
    run(tmp_path, STAMP + end, host=host)
    (batches,) = spooled(tmp_path).values()
    assert sorted(numbers(batches)) == list(range(STAMPS))
    assert batches[-1].kind is BatchKind.BYE


@HOSTS
def test_the_sender_works_while_greenlets_wait(tmp_path: Path, host: str) -> None:
    """Stamps are sent while greenlets wait, without a flush."""
    wait = """
give_up_s = time.monotonic() + 50
while probe._sender.waiting and time.monotonic() < give_up_s:
    gevent.sleep(0.05)
print(probe._sender.waiting, probe.dropped)
os._exit(0)
"""
    assert run(tmp_path, STAMP + wait, host=host).stdout.split() == ["0", "0"]
