"""Law of every moment: not only in the end, but whenever windows are judged, no message is surely lost that was not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopwatch.monitor.accounting.ledger import Ledger
from hopwatch.monitor.kernel.tally import Tally
from hopwatch.monitor.payloads import Claims, FactSheet, SetAside, unpack_sheets
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.row_kinds import CLAIMS_ROW, FACTS_ROW, SET_ASIDE_ROW
from hopwatch.monitor.spark import claim_reader
from hopwatch.monitor.spark.decoder import decode_segments
from hopwatch.monitor.spark.sources import spool
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US
from tests.model import probe_instances, scenario
from tests.model.message_names import Naming
from tests.model.random_choices import LYING, RENAMED_WAITS, SECOND_US, Dials, Dice, Fault, fault_sets
from tests.support.examples import examples
from tests.support.model_comparison import rules_of

AFTER_S: Final = (1, 30, 200, 1_000, 10_000)
"""Time without an arrival after which a window may be judged."""
Window = tuple[str, int]


class NewNaming(Naming):
    """Naming by a probe that knows deferrals: what an older one keeps waits unheard, and is lost by every account."""

    def __init__(self, dice: Dice, *, has_ids: bool = True) -> None:
        """Write version 2."""
        super().__init__(dice, has_ids=has_ids)
        self.version = 2


class Monitor:
    """Ledger and tallies of a monitor whose store is its memory."""

    def __init__(self, rules: dict[str, StreamConfig], spool_dir: Path) -> None:
        """Begin with nothing."""
        self._rules, self._spool_dir, self._ledger = rules, spool_dir, Ledger(rules)
        self._claims: dict[Window, list[Claims]] = {}
        self._tallies: dict[Window, Tally] = {}
        self._results: dict[Window, WindowResult] = {}
        self._heard: set[str] = set()
        self._watermark_us = 0

    def read(self, paths: Sequence[Path]) -> Iterator[WindowResult]:
        """Read segments, and judge what is due."""
        sheets, aside, tallied = list[FactSheet](), list[SetAside](), set[Window]()
        for row in decode_segments(list(map(str, paths)), self._rules):
            if row.kind == FACTS_ROW:
                sheets.extend(unpack_sheets(row.payload))
            elif row.kind == SET_ASIDE_ROW:
                aside.append(SetAside.unpack(row.payload))
            elif row.kind == CLAIMS_ROW:
                window = row.stream, row.window_start_ms * 1_000
                self._claims.setdefault(window, []).append(Claims.unpack(row.payload))
                tallied.add(window)
        self._heard |= {path.parent.name for path in paths}
        self._ledger.absorb(sheets)
        self._ledger.note_unread(aside, [one for one in spool.list_folders(self._spool_dir) if one.name in self._heard])
        yield from self.judge(paths[-1].stat().st_mtime_ns // 1_000, self._tally(tallied))

    def judge(self, watermark_us: int, tallied: Sequence[Window] = ()) -> Iterator[WindowResult]:
        """Judge what is due at a moment."""
        self._watermark_us = max(self._watermark_us, watermark_us)
        for conclusion in self._ledger.conclude(tallied, self._watermark_us, self):
            result = conclusion.result
            self._results[result.stream, result.window_start_us] = result
            yield result
        self._ledger.forget(self._watermark_us)

    def tallies(self, stream: str, start_us: int) -> Sequence[Tally]:
        """Return the tally of a window."""
        return [self._tallies[stream, start_us]] if (stream, start_us) in self._tallies else []

    def result(self, stream: str, start_us: int) -> WindowResult | None:
        """Return the last result of a window."""
        return self._results.get((stream, start_us))

    def lost_ids(self, stream: str, start_us: int) -> set[bytes]:
        """Return nothing: what turned up again does not matter here."""
        del stream, start_us
        return set()

    def _tally(self, windows: set[Window]) -> list[Window]:
        due = []
        for stream, start_us in sorted(windows):
            rules, claims = self._rules[stream], self._claims[stream, start_us]
            if self._watermark_us <= rules.terms.kept_until_us(start_us):
                tally = claim_reader.tally_claims(rules, claims, start_us + WINDOW_US)
                self._tallies[stream, start_us] = tally
                self._ledger.sight(stream, start_us, tally.last_first_sighting_us)
                due.append((stream, start_us))
        return due


@settings(max_examples=examples(40, every_run=5))
@example(678, RENAMED_WAITS, None)
@example(987, RENAMED_WAITS, None)
@given(st.integers(0, 2**32 - 1), fault_sets(LYING, max_size=6), st.sampled_from([None, "1m", "10m", "3650d"]))
def test_at_no_moment_is_more_surely_lost_than_is_lost(
    seed: int, thrown: frozenset[Fault], amend_for: str | None
) -> None:
    """A message that waits for a later try, at any instance, is not lost until its time is up, whatever has come."""
    chance = Random(seed)
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patched:
        patched.setattr(probe_instances, "Naming", NewNaming)
        folder, spool_dir = Path(name), Path(name) / "spool"
        spool_dir.mkdir()
        made = scenario.generate(Dials(seed, 40, 2, 1, thrown | {Fault.DEFERRED}), spool_dir)
        rules = rules_of(folder, made.streams, **({} if amend_for is None else {"amend_for": amend_for}))
        left = sorted(spool_dir.rglob("*.seg"), key=lambda path: (path.stat().st_mtime_ns, str(path)))
        monitor = Monitor(rules, spool_dir)
        while left:
            size = chance.randint(1, 5)
            _check(made, monitor.read(left[:size]))
            now_us, left = left[:size][-1].stat().st_mtime_ns // 1_000, left[size:]
            for after_s in AFTER_S:
                if not left or now_us + after_s * SECOND_US < left[0].stat().st_mtime_ns // 1_000:
                    _check(made, monitor.judge(now_us + after_s * SECOND_US))


def _check(made: scenario.Scenario, results: Iterator[WindowResult]) -> None:
    for result in results:
        truth, start_us = made.truth[result.stream], result.window_start_us
        assert result.lost_lower <= len(truth.lost(start_us))
        for node in result.nodes:
            assert node.loss_lower <= made.count_lost(result.stream, start_us, node.node)
        for counted in result.counts:
            assert counted.lost_before_lower <= made.count_lost_before(result.stream, start_us, counted.node)
