"""Laws of versions: each window is what a monitor says that only ever had the version of its minute."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.memo import Memo
from hopwatch.monitor.pathway import Pathway, PathwayError
from hopwatch.monitor.results import RollUp, WindowResult
from hopwatch.monitor.store import pathway_versions, ranges, reader, rollups, tables
from hopwatch.monitor.store.range_cache import MAX_PIECES
from hopwatch.monitor.store.ranges import RangeQuery
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US
from tests.model import scenario
from tests.support.examples import examples
from tests.support.micro_batches import MicroBatches
from tests.support.model_comparison import prepared_store, rules_of

OF_WINDOWS: Final = (
    *(tables.windows, tables.node_windows, tables.lost_ids),
    *(tables.label_counts, tables.second_counts, tables.path_times, tables.revisions),
)
OF_MESSAGES: Final = frozenset(
    {
        *("known", "delivered", "filtered", "rejected", "lost", "partial", "expected", "seen", "arrived", "departed"),
        *("lost_in_transit", "lost_inside", "lost_after", "loss", "unobserved", "orphans", "message_ids", "journeys"),
        *("lag_in_us_digest", "lag_out_us_digest", "inside_us_digest", "inversions", "node", "place"),
    }
)
SECOND_US: Final = 1_000_000
Rules = dict[str, StreamConfig]
Rows = dict[tuple[str, int], list[dict[str, Any]]]
seeds = st.integers(0, 2**31)


def edit_path(dice: random.Random, pathway: Pathway) -> Pathway:
    """Return a path with a node more, a node less, a node of another name, or other stamps."""
    lines = [
        f"{pathway.nodes[group.source]} -> {' | '.join(pathway.nodes[target] for target in group.targets)}"
        for group in pathway.groups
    ] or [pathway.nodes[0]]
    node = dice.choice(pathway.nodes)
    stamps: dict[str, str] = dict(zip(pathway.nodes, pathway.stamps, strict=True))
    kind = dice.randrange(5)
    if kind == 0:
        lines.append(f"{node} -> added")
    elif kind == 1:
        lines.append(f"added -> {node}")
    elif kind == 2:
        stamps[node] = dice.choice(["in", "out", "both", "count"])
    elif kind == 3:
        lines = [line for line in lines if node not in line.replace("->", " ").replace("|", " ").split()] or ["added"]
        stamps = {}
    else:
        lines = [" ".join("renamed" if word == node else word for word in line.split()) for line in lines]
        stamps["renamed"] = stamps.pop(node)
    try:
        return Pathway.parse(lines, stamps)
    except PathwayError:
        return pathway


def edit(dice: random.Random, config: StreamConfig) -> StreamConfig:
    """Return a version with some other path, terms, or number of shards."""
    terms = config.terms
    transit_us, settle_us = dice.choice([20, 60, 150, 400]) * SECOND_US, dice.choice([5, 30, 90]) * SECOND_US
    if dice.random() < 0.6:
        terms = WindowPolicy(
            transit_us, settle_us, dice.choice([terms.amend_for_us, 120 * SECOND_US]), terms.max_age_us
        )
    pathway = edit_path(dice, config.pathway) if dice.random() < 0.8 else config.pathway
    # A node that is ignored stays so: what it said meanwhile is not kept for a version that declares it again.
    gone = {node for node in config.pathway.declared if node not in {*pathway.declared, "added", "renamed"}}
    ignored = tuple(sorted({*config.ignore_nodes, *(node for node in gone if dice.random() < 0.5)}))
    return StreamConfig(pathway, terms, dice.randint(1, 3), ignored, dice.random() < 0.3, dice.choice([2, 10_000]))


def play(
    store: Engine,
    steps: Sequence[Sequence[Path] | Rules],
    rules: Mapping[str, StreamConfig],
    spool: Path,
    dice: random.Random,
    *,
    is_edited: bool = True,
) -> MicroBatches:
    """Run the batches of segments; where rules stand between them, the monitor is started again, edited by these."""
    batches = MicroBatches(rules, store, spool_dir=spool)
    with store.execution_options(writes=True).begin() as connection:
        pathway_versions.save_versions(connection, rules, 0)
    for step in steps:
        if isinstance(step, dict):
            batches.restart()
            if not is_edited:
                continue
            with store.execution_options(writes=True).begin() as connection:
                planned = pathway_versions.plan_versions(connection, step, batches.watermark_us)
                pathway_versions.save_versions(connection, planned, batches.watermark_us)
            batches.rules = planned
        else:
            batches.run(step, crash_after_store=dice.random() < 0.2)
    return batches


def read_rows(store: Engine) -> Rows:
    """Return all that the store has of each window, without the number of the write and whether it may change."""
    found: Rows = {}
    with store.begin() as connection:
        for table in OF_WINDOWS:
            for row in connection.execute(select(table).order_by(*table.primary_key)).mappings():
                told = {name: value for name, value in row.items() if name != "sequence"}
                found.setdefault((row["stream"], row["window_start_us"]), []).append(told | {"table": table.name})
    return found


def draw_steps(dice: random.Random, paths: Sequence[Path], rules: Rules) -> list[Sequence[Path] | Rules]:
    """Return batches of the segments, with edits between some of them."""
    steps: list[Sequence[Path] | Rules] = []
    rest, current = list(paths), rules
    while rest:
        size = dice.randint(1, max(1, len(paths) // 4))
        steps.append(rest[:size])
        rest = rest[size:]
        if dice.random() < 0.4:
            current = {
                stream: edit(dice, config) if dice.random() < 0.7 else config for stream, config in current.items()
            }
            # A stream may be gone for a while, and comes back as it is edited meanwhile.
            steps.append({stream: config for stream, config in current.items() if dice.random() < 0.9})
    return steps


class World(NamedTuple):
    """Random pipeline whose monitor was edited: the batches and edits, and what has come of them."""

    folder: Path
    spool: Path
    steps: Sequence[Sequence[Path] | Rules]
    batches: MicroBatches


@contextmanager
def edited_world(seed: int) -> Iterator[World]:
    """Yield the world of a seed, in a folder of its own."""
    with TemporaryDirectory() as name:
        folder, spool = Path(name), Path(name) / "spool"
        spool.mkdir()
        rules = rules_of(folder, scenario.generate(seed, spool).streams)
        steps = draw_steps(random.Random(seed), by_arrival(spool), rules)
        batches = play(prepared_store(folder, "edited.db"), steps, rules, spool, random.Random(seed))
        yield World(folder, spool, steps, batches)


def by_arrival(spool: Path) -> list[Path]:
    """Return the segments in the order in which they came."""
    return sorted(spool.rglob("*.seg"), key=lambda path: (path.stat().st_mtime_ns, str(path)))


@settings(max_examples=examples(25, every_run=3))
@given(seed=seeds)
def test_a_window_is_judged_as_if_there_never_was_another_version(seed: int) -> None:
    """Each row of each window, whatever was edited when, and with crashes; and no window is lost at a seam.

    What was set aside by one version and not by another is a gap where it was: then all that messages say is alike.
    """
    with edited_world(seed) as world:
        edited = world.batches
        for stream, config in edited.rules.items():
            for number, version in enumerate(config.versions):
                if version.is_removed:
                    assert not [
                        key for key in read_rows(edited.engine) if config.at(key[1]) is version and key[0] == stream
                    ]
                    continue
                alone = {**edited.rules, stream: replace(version, valid_from_us=0, earlier=())}
                store = prepared_store(world.folder, f"{list(edited.rules).index(stream)}-{number}.db")
                play(store, world.steps, alone, world.spool, random.Random(seed), is_edited=False)
                is_exact = not (has_gaps(edited.engine) or has_gaps(store))
                found, wanted = (
                    {
                        key: rows if is_exact else select_messages(rows)
                        for key, rows in read_rows(engine).items()
                        if key[0] == stream and config.at(key[1]) is version
                    }
                    for engine in (edited.engine, store)
                )
                assert found == {key: rows for key, rows in wanted.items() if key in found}
                assert_only_gaps(edited.engine, stream, wanted.keys() - found.keys())


def has_gaps(store: Engine) -> bool:
    """Return whether records were set aside for what their node may say, or because it is ignored."""
    reason = tables.set_aside.c.reason
    with store.begin() as connection:
        return connection.execute(select(reason).where(reason.in_(["unsupported", "ignored_node"]))).first() is not None


def select_messages(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what rows say of messages, whatever the books do."""
    told = ({name: value for name, value in row.items() if name in OF_MESSAGES} for row in rows)
    return [row for row in told if row]


def assert_only_gaps(store: Engine, stream: str, missing: set[tuple[str, int]]) -> None:
    """Check that windows which are not listed lie outside of all that has come of declared nodes."""
    with store.begin() as connection:
        first_us, last_us = reader.read_stream_ranges(connection).get(stream, (0, -1))
    assert not [start_us for _, start_us in missing if first_us <= start_us <= last_us]


@settings(max_examples=examples(20))
@given(seed=seeds)
def test_hours_and_days_add_up_windows_of_all_versions(seed: int) -> None:
    """Counts of a node are those of the windows that have it; the lag end to end is of who ended the path when."""
    with edited_world(seed) as world:
        edited = world.batches
        for is_rolled in (False, True):
            with edited.engine.execution_options(writes=True).begin() as connection:
                if is_rolled:
                    for stream, hour_us in rollups.read_stale_hours(connection):
                        rollups.roll_up_hour(connection, stream, hour_us)
                for stream in edited.rules:
                    windows = list(reader.read_final_windows(connection, stream, 0))
                    for read, length_us in ((rollups.read_hours, rollups.HOUR_US), (rollups.read_days, rollups.DAY_US)):
                        for one in read(connection, stream, None, None):
                            inside = [
                                w for w in windows if one.start_us <= w.window_start_us < one.start_us + length_us
                            ]
                            assert_is_sum(one, inside)


@settings(max_examples=examples(30, every_run=5))
@given(seed=seeds, first=st.integers(0, 400), minutes=st.integers(1, 400))
def test_a_range_adds_up_windows_of_all_versions(seed: int, first: int, minutes: int) -> None:
    """A range is the sum of its windows, whatever part of it is read from hours and days, and whatever is kept."""
    with edited_world(seed) as world:
        edited = world.batches
        kept = Memo(MAX_PIECES)
        for is_rolled in (False, True):
            with edited.engine.execution_options(writes=True).begin() as connection:
                if is_rolled:
                    for stream, hour_us in rollups.read_stale_hours(connection)[::2]:
                        rollups.roll_up_hour(connection, stream, hour_us)
                for stream, (first_us, _) in reader.read_stream_ranges(connection).items():
                    from_us = first_us + (first - 200) * WINDOW_US
                    to_us = from_us + minutes * WINDOW_US
                    found = ranges.read_range(connection, RangeQuery(stream, from_us, to_us, WINDOW_US), name_all, kept)
                    windows = [
                        one
                        for one in reader.read_final_windows(connection, stream, from_us)
                        if one.window_start_us < to_us
                    ]
                    assert (found.whole is None) == (not windows)
                    if found.whole is not None:
                        assert_is_sum(found.whole, windows)


def name_all(whole: RollUp | None) -> set[str]:
    """Choose all nodes."""
    return {node.node for node in whole.nodes} if whole else set()


def assert_is_sum(span: Any, windows: Sequence[WindowResult]) -> None:  # noqa: ANN401 - an hour or a day
    """Check counts, bounds and the number of lags of a span against its windows."""
    assert span.windows == len(windows)
    assert (span.known, span.lost) == (sum(one.known for one in windows), sum(one.lost for one in windows))
    counts: dict[str, int] = {}
    for one in windows:
        for node in one.nodes:
            counts[node.node] = counts.get(node.node, 0) + node.seen
    assert {node.node: node.seen for node in span.nodes} == counts
    lags = [one.lag_us for one in windows if one.lag_us is not None]
    told = None if span.lag_us is None else (span.lag_us.count, span.lag_us.min, span.lag_us.max)
    wanted = (
        sum(lag.count for lag in lags),
        min((lag.min for lag in lags), default=0),
        max((lag.max for lag in lags), default=0),
    )
    assert told == (wanted if lags else None)
    if len(lags) == 1 and lags[0].count <= tdigest.EXACT_UP_TO:
        assert span.lag_us == lags[0]
