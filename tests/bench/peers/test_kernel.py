"""Tests of the bare kernel as a contestant: it finds what is there, and what it is not given is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import contestant
from bench.generate import GeneratedWork
from bench.peers import kernel
from bench.truth import WrongResultError
from bench.work import blocks


def test_the_kernel_finds_what_is_there(little: GeneratedWork, tmp_path: Path) -> None:
    """Counts, lost ids and quantiles of every window of every node agree with the truth."""
    ran = contestant.run("bench.peers.kernel:run", tmp_path, work=little.work.as_json(), made=str(little.folder))
    assert ran.result["query_s"] > 0


def test_one_message_less_is_noticed(little: GeneratedWork) -> None:
    """A message that was not tallied at the last node is lost in the result, and the truth says otherwise."""
    windows = kernel.by_window(blocks(little.work))
    last = windows[0][-1]
    windows[0][-1] = last._replace(
        message_ids=last.message_ids[1:], lag_in_us=last.lag_in_us[1:], lag_out_us=last.lag_out_us[1:]
    )
    found = kernel.collect_findings(windows, [kernel.build_tally(of_window, 512) for of_window in windows])
    with pytest.raises(WrongResultError, match=r"^the kernel, stream 0, window 0, node n3: [\d,]+ seen"):
        little.truth().check("the kernel", found)
