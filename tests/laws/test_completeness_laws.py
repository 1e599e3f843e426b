"""Laws of completeness: never a wrong "complete", no way back but an amendment, and a true cause for each "not yet"."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.monitor.kernel.completeness import (
    CompletenessContract,
    CompletenessState,
    JudgedWindow,
    Obstacle,
    StreamWindows,
    bound_loss,
    decide_completeness,
)
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.results import Status, Verdict, WindowResult
from hopwatch.monitor.store import reader
from hopwatch.monitor.store.completeness import read_completeness
from hopwatch.probes.contract.limits import WINDOW_US
from tests.laws.verdict_worlds import ToldWindow, told_windows
from tests.model import model, scenario
from tests.support.examples import examples
from tests.support.micro_batches import MicroBatches
from tests.support.model_comparison import prepared_store, rules_of
from tests.support.spool_traffic import pulse

TERMS: Final = WindowPolicy(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000)
SHARES: Final = st.sampled_from([0.0, 0.2, 0.34, 0.5, 0.75, 1.0])
LATER_US: Final = 100 * WINDOW_US
"""A moment at which all windows are judged, and none amended yet."""


def _upstream(window: ToldWindow, place: int) -> list[int]:
    """Return the places of a node and all before it."""
    return [place, *np.flatnonzero(window.pathway.downstream[:, place]).tolist()]


def _bounds(result: WindowResult, places: list[int]) -> tuple[int, int | None]:
    """Return the sums of the bounds of some nodes, or those end to end without any."""
    if not places:
        return result.lost_lower, result.lost_upper
    nodes = [result.nodes[place] for place in places]
    uppers = [node.loss_upper for node in nodes if node.loss_upper is not None]
    return sum(node.loss_lower for node in nodes), sum(uppers) if len(uppers) == len(nodes) else None


def _count_lost(result: WindowResult, places: list[int]) -> int:
    """Return how many messages are lost at some nodes, or end to end without any, by a result that knows all."""
    return sum(result.nodes[place].loss for place in places) if places else result.lost


def _judged(result: WindowResult, number: int, places: list[int]) -> JudgedWindow:
    bounds = bound_loss(result.verdict, *_bounds(result, places))
    start_us = number * WINDOW_US
    told = Status.FINAL, result.verdict, 0, result.known
    return JudgedWindow(start_us, *told, *bounds, result.in_flight, is_settled=True, reasons=result.reasons)


@given(st.lists(told_windows("cccdhs-"), min_size=1, max_size=3), SHARES, st.none() | SHARES, st.data())
def test_complete_is_never_said_of_what_lost_more(
    worlds: list[ToldWindow], lost_below: float, upper_below: float | None, data: st.DataObject
) -> None:
    """The true loss of the span, up to the nodes of the contract, keeps the bound, whatever the probes did not tell."""
    of_nodes = data.draw(st.booleans())
    places = [_upstream(one, data.draw(st.integers(0, len(one.accounts) - 1))) if of_nodes else [] for one in worlds]
    windows = [_judged(one.concluded(), number, places[number]) for number, one in enumerate(worlds)]
    over_us = len(worlds) * WINDOW_US
    contract = CompletenessContract("s", ("n",) if of_nodes else (), over_us, lost_below, upper_below)
    found = decide_completeness(contract, TERMS, over_us, StreamWindows(0, over_us, LATER_US, windows))
    true = [_count_lost(one.true_result(), chosen) for one, chosen in zip(worlds, places, strict=True)]
    lost = sum(true)
    known = sum(len(one.truths) for one in worlds)
    if found.state is CompletenessState.COMPLETE:
        assert lost == 0 or lost < contract.upper_bound * known
        assert found.blocked == ()
    else:
        assert found.blocked
    for one in found.blocked:
        blamed = windows[one.from_us // WINDOW_US : one.to_us // WINDOW_US]
        if one.obstacle is Obstacle.UNKNOWN:
            assert all(window.upper is None and window.verdict is not Verdict.CLEAN for window in blamed)
        if one.obstacle is Obstacle.LOST:
            assert found.state is CompletenessState.FAILED
            blamed_worlds = worlds[one.from_us // WINDOW_US : one.to_us // WINDOW_US]
            assert all(any(truth.lost_at for truth in world.truths) for world in blamed_worlds)


@given(st.lists(told_windows("c"), min_size=1, max_size=3))
def test_with_complete_books_the_answer_is_the_truth(worlds: list[ToldWindow]) -> None:
    """None lost is complete, and anything lost fails the strictest contract, if every probe has told all."""
    windows = [_judged(one.concluded(), number, []) for number, one in enumerate(worlds)]
    over_us = len(worlds) * WINDOW_US
    stored = StreamWindows(0, over_us, LATER_US, windows)
    found = decide_completeness(CompletenessContract("s", (), over_us), TERMS, over_us, stored)
    is_lossy = any(one.lost for one in worlds)
    assert found.state is (CompletenessState.FAILED if is_lossy else CompletenessState.COMPLETE)


@settings(max_examples=examples(40, every_run=5))
@given(seed=st.integers(0, 2**31), minutes=st.integers(1, 3))
def test_complete_stays_so_unless_a_window_is_amended(seed: int, minutes: int) -> None:
    """Micro-batch by micro-batch of a pipeline in which anything goes wrong; in the end the slow model agrees."""
    with TemporaryDirectory() as name:
        folder, spool, chance = Path(name), Path(name) / "spool", random.Random(seed)
        spool.mkdir()
        made = scenario.generate(seed, spool)
        paths = sorted(spool.rglob("*.seg"), key=lambda path: (path.stat().st_mtime_ns, str(path)))
        if not paths:
            return
        known = rules_of(folder, made.streams, amend_for="3650d")
        last_us = paths[-1].stat().st_mtime_ns // 1_000
        paths += [pulse(last_us + 20 * WINDOW_US + at_us, f"p{at_us}").write(spool) for at_us in (0, WINDOW_US)]
        store = prepared_store(folder, "stream.db")
        batches = MicroBatches(known, store, spool_dir=spool)
        said: dict[tuple[str, int], int] = {}
        while paths:
            size = chance.randint(1, len(paths))
            batches.run(paths[:size])
            paths = paths[size:]
            said = _ask_again(store, known, minutes, said)
        amendable = {name: stream | {"amend_for": "3650d"} for name, stream in made.streams.items()}
        clean = _find_lossless(model.report(amendable, spool))
        for stream, until_us in said:
            starts = range(until_us - minutes * WINDOW_US, until_us, WINDOW_US)
            assert {(stream, start_us) for start_us in starts} <= clean


def _ask_again(store: Any, known: Any, minutes: int, before: dict[tuple[str, int], int]) -> dict[tuple[str, int], int]:  # noqa: ANN401 - an engine, and rules
    """Return the ends of the complete spans with their revisions; what was complete is so, or was amended since."""
    found: dict[tuple[str, int], int] = {}
    with store.begin() as connection:
        for stream, (first_us, last_us) in reader.read_stream_ranges(connection).items():
            if stream not in known:
                continue
            contract = CompletenessContract(stream, (), minutes * WINDOW_US)
            for end_us in range(first_us, last_us + 2 * WINDOW_US, WINDOW_US):
                answer = read_completeness(connection, contract, known[stream].terms, end_us).decision
                is_complete = answer.state is CompletenessState.COMPLETE
                was = before.get((stream, end_us))
                assert is_complete or was is None or answer.revisions > was
                if is_complete:
                    found[stream, end_us] = answer.revisions
    return found


def _find_lossless(report: dict[str, Any]) -> set[tuple[str, int]]:
    """Return the windows that the model calls clean or idle, by stream and start."""
    return {
        (stream["stream"], _parse_us(window["window_start"]))
        for stream in report["streams"]
        for window in stream["windows"]
        if window["verdict"] in {"CLEAN", "IDLE"} or window["lost_upper"] == 0
    }


def _parse_us(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * 1_000_000
