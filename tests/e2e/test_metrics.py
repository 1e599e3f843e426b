"""The page of metrics of a running monitor: it says what the report says, and has no hole behind a restart."""

from __future__ import annotations

import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from servers.process import free_ports
from tests.support.job import Job, running
from tests.support.spool_traffic import NODES, traffic

Page = dict[tuple[str, frozenset[tuple[str, str]]], float]


def page(port: int) -> Page:
    """Return the samples of the page; none while nobody serves it."""
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}
    return {}


def value(of: Page, name: str, **labels: str) -> float | None:
    """Return one sample; none where it is not there."""
    return of.get((name, frozenset(labels.items())))


def start(folder: Job, port: int) -> None:
    """Start the job, with its page at a port."""
    folder.start()
    folder.await_(lambda: page(port) != {}, "the page")


def final(report: dict[str, Any], stream: str) -> list[dict[str, Any]]:
    """Return the final windows of a stream."""
    (found,) = [one["windows"] for one in report["streams"] if one["stream"] == stream]
    return [window for window in found if window["status"] in {"FINAL", "AMENDED"}]


def test_the_page_says_what_the_report_says_and_goes_on_behind_a_restart(tmp_path: Path) -> None:
    """Counters of all final windows, gauges of the newest; after a restart the same gauges, and counters from 0."""
    (port,) = free_ports(1)
    with running(tmp_path) as job:
        job.config.write_text(f'{job.config.read_text()}[metrics]\nlisten = "127.0.0.1:{port}"\n')
        for segment in traffic(seed=7):
            segment.write(job.spool)
        start(job, port)
        job.await_(job.is_final, "the last final window")
        report = job.report()
        job.await_(lambda: value(page(port), "hopwatch_records_total") == report["accounts"]["records"], "the accounts")
        before = page(port)
        for stream in ("s0", "s1"):
            windows = final(report, stream)
            assert value(before, "hopwatch_messages_total", stream=stream) == sum(one["known"] for one in windows)
            lost = sum(one["lost_lower"] for one in windows)
            assert value(before, "hopwatch_lost_messages_total", stream=stream) == lost > 0
            for place, node in enumerate(NODES):
                lost = sum(one["nodes"][place]["loss_lower"] for one in windows)
                assert value(before, "hopwatch_node_lost_messages_total", stream=stream, node=node) == lost
        assert (value(before, "hopwatch_batch_duration_seconds_count") or 0) > 0
        assert job.stop() == 0

        start(job, port)
        after = page(port)
        assert value(after, "hopwatch_messages_total", stream="s0") == 0
        gauges = ("hopwatch_newest_final_window_timestamp_seconds", "hopwatch_watermark_timestamp_seconds")
        of_windows = ("hopwatch_window_verdict", "hopwatch_node_lag_seconds", "hopwatch_stream_loss_ratio")
        assert {key: shows for key, shows in after.items() if key[0] in gauges + of_windows} == {
            key: shows for key, shows in before.items() if key[0] in gauges + of_windows
        }
        assert job.stop() == 0
