"""Completeness in many random pipelines: never a wrong "complete", and each "not yet" has a cause that is true.

The truth is what happened to the messages, whatever the probes saw; the causes are held against the slow model, which
reads what had come by then.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from sqlalchemy import Engine

from hopwatch.monitor.accounting.completeness_answer import CompletenessAnswer
from hopwatch.monitor.kernel.completeness import BlockedSpan, CompletenessContract, CompletenessState, Obstacle
from hopwatch.monitor.settings.completeness import CompletenessSettings
from hopwatch.monitor.store import reader
from hopwatch.monitor.store.completeness import read_completeness
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US
from tests.model import model, scenario
from tests.model.pathway import parse
from tests.model.random_choices import LYING, Dials, Fault
from tests.model.sets import WindowSets
from tests.support.examples import soak_after
from tests.support.micro_batches import MicroBatches
from tests.support.model_comparison import prepared_store, rules_of
from tests.support.spool_traffic import pulse

WORLDS: Final = 1_000
AT_ONCE: Final = 20
EVERY_RUN: Final = 8
"""Worlds of every run but a soak, of the first AT_ONCE."""
"""Worlds of one case."""
UNBOUNDED: Final = LYING | {Fault.MISTIMED, Fault.MISNAMED, Fault.CROSSED}
"""With these an upper bound does not hold: an account says more than it holds, or messages are of no window."""
AMENDABLE: Final = "3650d"
ENDS: Final = 6
"""Spans that a contract is asked about at a time."""
BEYOND: Final = 2
"""Minutes before the first window, and behind the last one, that are asked for too."""


@dataclass(frozen=True)
class _Seen:
    """All that has come as the model sees it: the windows of each stream by their start in µs, and the accounts."""

    windows: Mapping[str, Mapping[int, Any]]
    accounts: model.OpenAccounts

    @classmethod
    def read(cls, streams: Mapping[str, Mapping[str, Any]], spool: Path) -> _Seen:
        """Read a spool."""
        told = model.report(streams, spool)["streams"]
        windows = {one["stream"]: {_parse_us(of["window_start"]): of for of in one["windows"]} for one in told}
        return cls(windows, model.OpenAccounts(streams, spool))


@dataclass
class World:
    """Pipeline, and the store of a monitor that reads what comes of it, some segments at a time."""

    made: scenario.Scenario
    rules: Mapping[str, StreamConfig]
    store: Engine
    came: Path
    """A spool of what has come so far, for the model."""
    chance: random.Random

    @property
    def streams(self) -> dict[str, dict[str, Any]]:
        """The streams as the monitor has them."""
        return {name: stream | {"amend_for": AMENDABLE} for name, stream in self.made.streams.items()}

    def check(self, *, is_over: bool) -> int:
        """Ask every contract about some spans; return how many are complete."""
        seen = _Seen.read(self.streams, self.came)
        complete = 0
        with self.store.begin() as connection:
            for stream, (first_us, last_us) in reader.read_stream_ranges(connection).items():
                ends = range(first_us - BEYOND * WINDOW_US, last_us + (2 + BEYOND) * WINDOW_US, WINDOW_US)
                for contract in self._contracts(stream) if stream in self.rules else ():
                    for end_us in self.chance.sample(ends, min(len(ends), ENDS)):
                        answer = read_completeness(connection, contract, self.rules[stream].terms, end_us)
                        if answer.decision.state is not CompletenessState.COMPLETE:
                            self._check_causes(contract, answer, seen)
                            continue
                        complete += 1
                        # What comes later than its window was judged may amend it.
                        if is_over or Fault.LATE_EVENTS not in self.made.dials.faults:
                            self._check_complete(contract, answer)
        return complete

    def _contracts(self, stream: str) -> Iterator[CompletenessContract]:
        pathway, over_us = self.rules[stream].pathway, self.chance.randint(1, 3) * WINDOW_US
        strict = CompletenessSettings.model_validate({"stream": stream}).build_contract(pathway)
        node = self.chance.choice(pathway.nodes)
        of_node = CompletenessSettings.model_validate({"stream": stream, "nodes": [node]}).build_contract(pathway)
        for one in (strict, of_node, replace(strict, lost_below=0.3), replace(of_node, lost_below=0.1)):
            yield replace(one, over_us=over_us)

    def _check_complete(self, contract: CompletenessContract, answer: CompletenessAnswer) -> None:
        """Check that no more was lost than the contract allows."""
        lost = sum(self._count_lost(contract, start_us) for start_us in _starts(answer))
        assert lost == 0 or lost < contract.upper_bound * answer.decision.known, (contract, answer)

    def _count_lost(self, contract: CompletenessContract, start_us: int) -> int:
        """Count what was lost of a window, up to the nodes of the contract, had every node stamped everything."""
        table = self.made.streams[contract.stream]
        sides = {node: side for node, side in table.get("stamps", {}).items() if side != "count"}
        pathway = parse(table["path"], sides)
        sets = WindowSets(pathway, self.made.truth[contract.stream].visits[start_us])
        if not contract.nodes:
            return len(sets.lost())
        nodes = set(contract.nodes).union(*(pathway.upstream(node) for node in contract.nodes))
        return len(frozenset[bytes]().union(*(sets.lost_at(node) for node in nodes)))

    def _check_causes(self, contract: CompletenessContract, answer: CompletenessAnswer, seen: _Seen) -> None:
        """Check that each obstacle is there, by the model, and that whom it names has not told."""
        assert answer.decision.blocked
        for span in answer.decision.blocked:
            for start_us in range(span.from_us, span.to_us, WINDOW_US):
                assert self._is_true(contract, answer, span, start_us, seen), (contract, answer, start_us)
        if answer.accounts:
            untold = seen.accounts.find(contract.stream, _starts(answer))
            assert {(one.node, one.probe, one.epoch_us) for one in answer.accounts} <= untold

    def _is_true(
        self, contract: CompletenessContract, answer: CompletenessAnswer, span: BlockedSpan, start_us: int, seen: _Seen
    ) -> bool:
        windows = seen.windows[contract.stream]
        window = windows.get(start_us)
        if window is None:
            is_behind = start_us > max(windows)
            return span.obstacle is (Obstacle.NOT_REPORTED if is_behind else Obstacle.NOT_KEPT)
        uppers = _uppers(contract, window)
        return {
            Obstacle.NOT_JUDGED: answer.read_through_us < self.rules[contract.stream].terms.final_at_us(start_us),
            Obstacle.IN_FLIGHT: span.messages > 0 and window["lost"] + window["in_flight"] > 0,
            Obstacle.UNKNOWN: None in uppers and window["verdict"] not in {"CLEAN", "IDLE"},
            Obstacle.LOST: span.messages > 0 and bool(self.made.truth[contract.stream].lost(start_us)),
            Obstacle.MAYBE_LOST: None in uppers or any(uppers) or window["in_flight"] > 0,
        }.get(span.obstacle, False)


def _uppers(contract: CompletenessContract, window: Mapping[str, Any]) -> Sequence[int | None]:
    """Return the upper bounds that the model has for the nodes of a contract, or end to end."""
    counting = [None] if window["counts"] else []
    if not contract.nodes:
        return [window["lost_upper"], *counting]
    return [one["loss_upper"] for one in window["nodes"] if one["node"] in contract.nodes] + counting


def _starts(answer: CompletenessAnswer) -> range:
    return range(answer.decision.from_us, answer.decision.until_us, WINDOW_US)


def _parse_us(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * 1_000_000


@pytest.mark.parametrize("first", soak_after(1, range(0, WORLDS, AT_ONCE)))
def test_no_complete_is_wrong_and_each_cause_is_true(first: int, times: Callable[[int, int], int]) -> None:
    """Of each world, in the middle and at the end."""
    complete = sum(check_world(seed) for seed in range(first, first + times(EVERY_RUN, AT_ONCE)))
    assert complete > 0


def check_world(seed: int) -> int:
    """Check the answers in a world of a seed as it is read; return how many were complete."""
    with TemporaryDirectory() as name:
        folder, spool, came = Path(name), Path(name) / "spool", Path(name) / "came"
        spool.mkdir()
        came.mkdir()
        thrown = Dials.of_seed(seed)
        made = scenario.generate(replace(thrown, faults=thrown.faults - UNBOUNDED), spool)
        rules = rules_of(folder, made.streams, amend_for=AMENDABLE)
        world = World(made, rules, prepared_store(folder, "stream.db"), came, random.Random(seed))
        paths = sorted(spool.rglob("*.seg"), key=lambda path: (path.stat().st_mtime_ns, str(path)))
        if not paths:
            return 0
        last_us = paths[-1].stat().st_mtime_ns // 1_000
        paths += [pulse(last_us + 20 * WINDOW_US + at_us, f"p{at_us}").write(spool) for at_us in (0, WINDOW_US)]
        batches = MicroBatches(rules, world.store, spool_dir=came)
        half, complete = world.chance.randint(1, len(paths) - 1), 0
        for part in (paths[:half], paths[half:]):
            batches.run([_bring(path, spool, came) for path in part])
            complete += world.check(is_over=part[-1] is paths[-1])
        world.store.dispose()
    return complete


def _bring(path: Path, spool: Path, came: Path) -> Path:
    """Let a segment come into the spool that is read."""
    target = came / path.relative_to(spool)
    target.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy2(path, target))
