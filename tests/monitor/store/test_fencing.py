"""Tests of the fence against replays, and of what does not fit together."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine

from hopwatch.monitor.errors import CheckpointError, StoreError
from hopwatch.monitor.markers import MAX_CHARS, Marker
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.store import dialect, fencing, writer
from hopwatch.monitor.store.markers import query_markers
from hopwatch.monitor.store.writer import Changes
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.conclusions import build_conclusion, dump_tables, write_conclusions
from tests.support.spool import START_US, STREAM_CONFIGS

Rules = dict[str, StreamConfig]


def enter(engine: Engine, query: str, batch_id: int, rules: Rules = STREAM_CONFIGS) -> bool:
    """Pass the fence in a transaction of its own."""
    with engine.execution_options(writes=True).begin() as connection:
        return fencing.register_batch(connection, query, batch_id, rules)


def begin_once(engine: Engine, rules: Rules = STREAM_CONFIGS) -> None:
    """Begin a run over everything in a transaction of its own."""
    with engine.execution_options(writes=True).begin() as connection:
        fencing.begin_once(connection, rules)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Return a checkpoint of the query q that has planned batches 0 to 3 and done 0 to 2."""
    return write_checkpoint(tmp_path / "checkpoint", query="q", planned=3, done=2)


def write_checkpoint(folder: Path, *, query: str, planned: int, done: int) -> Path:
    """Write what Spark keeps of a query: its id, and a file for each batch planned and each done."""
    for log, newest in (("offsets", planned), ("commits", done)):
        (folder / log).mkdir(parents=True)
        for batch_id in range(newest + 1):
            (folder / log / str(batch_id)).write_text("v1\n{}\n{}")
            (folder / log / f".{batch_id}.crc").write_text("")
    (folder / "metadata").write_text(json.dumps({"id": query}))
    return folder


# The fence


def require_run(engine: Engine, run: str) -> None:
    """Look whether the store is a run's."""
    with engine.begin() as connection:
        fencing.require_run(connection, run)


def begin_anew(engine: Engine, folder: Path) -> None:
    """Begin anew, as another monitor may."""
    fencing.begin_anew(engine, folder / "nothing")


TAKEN = {
    "another run": lambda engine, folder: fencing.claim_store(engine, folder / "nothing", STREAM_CONFIGS, "", "second"),
    "a run over everything": lambda engine, _: begin_once(engine),
    "one that begins anew": begin_anew,
}


@pytest.mark.parametrize("take", TAKEN.values(), ids=TAKEN)
def test_the_store_is_of_the_run_that_began_last(
    engine: Engine, tmp_path: Path, take: Callable[[Engine, Path], None]
) -> None:
    """The one before finds it taken in its next transaction, whatever its lock was worth."""
    fencing.claim_store(engine, tmp_path / "nothing", STREAM_CONFIGS, "", "first")
    require_run(engine, "first")
    take(engine, tmp_path)
    with pytest.raises(StoreError) as caught:
        require_run(engine, "first")
    told = f"another monitor has taken the store {dialect.redact_url(engine.url)}, and this one ends: run one of them, "
    assert str(caught.value) == told + "and keep a SQLite store on a disk of its own machine, where locks hold"


def test_a_run_that_is_refused_takes_nothing(engine: Engine, checkpoint: Path, tmp_path: Path) -> None:
    """A run that is refused leaves the store with its owner."""
    fencing.claim_store(engine, tmp_path / "nothing", STREAM_CONFIGS, "", "first")
    with pytest.raises(CheckpointError):
        fencing.claim_store(engine, checkpoint, STREAM_CONFIGS, "", "second")
    require_run(engine, "first")


def test_each_batch_passes_once(engine: Engine) -> None:
    """A replay of the last batch, or of an older one, is turned away."""
    passed = [enter(engine, "q", batch_id) for batch_id in (0, 0, 1, 2, 2, 1, 3)]
    assert passed == [True, False, True, True, False, False, True]


def test_a_batch_that_was_rolled_back_passes_again(engine: Engine) -> None:
    """The fence is part of the transaction that it guards."""
    with engine.connect().execution_options(writes=True) as connection, connection.begin() as transaction:
        assert fencing.register_batch(connection, "q", 0, STREAM_CONFIGS)
        transaction.rollback()
    assert enter(engine, "q", 0)


def test_a_batch_that_was_turned_away_leaves_no_trace(engine: Engine) -> None:
    """Not even other rules."""
    enter(engine, "q", 3)
    before = dump_tables(engine)
    assert not enter(engine, "q", 3, {})
    assert dump_tables(engine) == before


# Whether store, checkpoint and configuration belong together


@pytest.mark.parametrize("last", [2, 3])
def test_a_store_between_done_and_planned_fits(last: int, engine: Engine, checkpoint: Path) -> None:
    """A crash may come before the store has written the planned batch, or before Spark has noted it as done."""
    enter(engine, "q", last)
    fencing.claim_store(engine, checkpoint, STREAM_CONFIGS)


def test_another_topic_is_refused(engine: Engine, checkpoint: Path) -> None:
    """One that was made anew is another one: the offsets of the old say nothing of it. A spool fits."""
    with engine.execution_options(writes=True).begin() as connection:
        fencing.register_batch(connection, "q", 2, STREAM_CONFIGS, "first")
    fencing.claim_store(engine, checkpoint, STREAM_CONFIGS, "first")
    fencing.claim_store(engine, checkpoint, STREAM_CONFIGS)
    with pytest.raises(CheckpointError) as caught:
        fencing.claim_store(engine, checkpoint, STREAM_CONFIGS, "second")
    assert str(caught.value) == (
        "the store was written from another topic: first; [transport] url names second: "
        "put it back, name another store and workdir, or pass --begin-anew"
    )


@pytest.mark.parametrize("text", ["", "v1", "v1\n", "v1\n{", "v1\n{}"], ids=repr)
def test_a_checkpoint_with_a_file_that_is_cut_is_refused(text: str, engine: Engine, checkpoint: Path) -> None:
    """Spark itself would die of it without a name."""
    (checkpoint / "offsets" / "9").write_text(text)
    with pytest.raises(CheckpointError) as caught:
        fencing.claim_store(engine, checkpoint, STREAM_CONFIGS)
    assert str(caught.value) == (
        f"the checkpoint {checkpoint} is damaged, its file offsets/9 is not whole: "
        "bring back a copy of it, or pass --begin-anew"
    )


def test_to_begin_anew_leaves_neither_results_nor_checkpoint(engine: Engine, checkpoint: Path) -> None:
    """The next stream finds an empty store, and fits it."""
    assert fencing.begin_anew(engine, checkpoint) == 0
    assert not checkpoint.exists()
    fencing.claim_store(engine, checkpoint, STREAM_CONFIGS)


def test_an_empty_store_and_no_checkpoint_fit(engine: Engine, tmp_path: Path) -> None:
    """Everything begins anew."""
    fencing.claim_store(engine, tmp_path / "checkpoint", STREAM_CONFIGS)


def test_an_empty_store_fits_a_checkpoint_that_has_done_nothing(engine: Engine, tmp_path: Path) -> None:
    """The first batch was planned when the job was killed."""
    fencing.claim_store(
        engine, write_checkpoint(tmp_path / "checkpoint", query="q", planned=0, done=-1), STREAM_CONFIGS
    )


MISFITS = {
    "an empty store": (None, "q", 3, 2, "the checkpoint C is at batch 2, the store is empty"),
    "no checkpoint": (2, "q", -1, -1, "the store was written up to batch 2, the checkpoint C has none"),
    "another query": (2, "r", 3, 2, "the store was written by query q, the checkpoint C is of r"),
    "an older store": (1, "q", 3, 2, "the store is at batch 1, the checkpoint C has done 2 and planned 3"),
    "a newer store": (4, "q", 3, 2, "the store is at batch 4, the checkpoint C has done 2 and planned 3"),
}


@pytest.mark.parametrize(("last", "query", "planned", "done", "told"), MISFITS.values(), ids=MISFITS)
def test_a_checkpoint_that_does_not_fit_is_refused(
    last: int | None, query: str, planned: int, done: int, told: str, engine: Engine, tmp_path: Path
) -> None:
    """The message says how far each of them is, and what to do."""
    if last is not None:
        enter(engine, "q", last)
    checkpoint = write_checkpoint(tmp_path / "checkpoint", query=query, planned=planned, done=done)
    with pytest.raises(CheckpointError) as caught:
        fencing.claim_store(engine, checkpoint, STREAM_CONFIGS)
    assert str(caught.value) == (
        f"{told.replace(' C ', f' {checkpoint} ')}: "
        f"bring back the other's own, put the store and {checkpoint} aside together, or pass --begin-anew"
    )


@pytest.mark.parametrize("metadata", [None, "", "{", "[]", '{"name": "q"}'])
def test_a_checkpoint_without_an_id_is_refused(metadata: str | None, engine: Engine, checkpoint: Path) -> None:
    """A crash may have cut its metadata."""
    enter(engine, "q", 2)
    (checkpoint / "metadata").unlink()
    if metadata is not None:
        (checkpoint / "metadata").write_text(metadata)
    with pytest.raises(CheckpointError) as caught:
        fencing.claim_store(engine, checkpoint, STREAM_CONFIGS)
    assert str(caught.value) == (
        f"the checkpoint {checkpoint} is damaged, its file metadata tells no id: "
        "put it and the store aside to begin anew"
    )


def test_a_stream_refuses_the_store_of_a_run_over_everything(engine: Engine, tmp_path: Path) -> None:
    """Their windows would be told apart by nothing."""
    begin_once(engine)
    with pytest.raises(StoreError) as caught:
        fencing.claim_store(engine, tmp_path / "checkpoint", STREAM_CONFIGS)
    assert str(caught.value) == (
        f"the store {engine.url} holds the results of a --once run: name another store in [store] url, or delete it"
    )


def test_a_run_over_everything_refuses_the_store_of_a_stream(engine: Engine) -> None:
    """The stream has deleted segments that it had judged; nothing of the store is changed."""
    enter(engine, "q", 0)
    before = dump_tables(engine)
    with pytest.raises(StoreError) as caught:
        begin_once(engine)
    assert str(caught.value) == (
        "the store holds the results of a stream, --once would replace them: name another store in [store] url, "
        "or the span to judge again by --from and --to"
    )
    assert dump_tables(engine) == before


def test_a_run_over_everything_replaces_the_one_before(engine: Engine) -> None:
    """A run over everything replaces the results of the one before, whatever its configuration was."""
    begin_once(engine, {"trades": STREAM_CONFIGS["orders"]})
    write_conclusions(engine, build_conclusion(lost={"b": bytes(16)}))
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, Changes(0, streams={"orders": (0, 0)}))
    begin_once(engine)
    left = {name: rows for name, rows in dump_tables(engine).items() if rows}
    assert list(left) == ["meta", "pathway_versions"]
    assert [name for name, _ in left["meta"]] == ["query_id", "run", "sequence", "watermark_us"]
    assert [stream for stream, *_ in left["pathway_versions"]] == ["orders"]


def test_a_claim_registers_a_changed_path_and_marks_its_minute(engine: Engine, checkpoint: Path) -> None:
    """A mark is taken back with a version that never became valid; streams that are new have none."""
    enter(engine, "q", 2)
    other = dict.fromkeys(["orders", "new"], replace(STREAM_CONFIGS["orders"], pathway=Pathway.parse("a -> b -> c")))
    claimed = fencing.claim_store(engine, checkpoint, other, now_us=START_US)
    assert claimed["orders"].valid_from_us == START_US + WINDOW_US
    assert [one.describe() for one in read_markers(engine)] == ["configuration: node c added; arrow b -> c added"]
    fencing.claim_store(engine, checkpoint, other, now_us=START_US)
    (mark,) = read_markers(engine)
    assert (mark.at_us, mark.stream, mark.by) == (START_US + WINDOW_US, "orders", "hopwatch")
    claimed = fencing.claim_store(engine, checkpoint, STREAM_CONFIGS, now_us=START_US)
    assert (claimed["orders"], claimed["new"].is_removed) == (STREAM_CONFIGS["orders"], True)
    assert [(one.stream, one.text) for one in read_markers(engine)] == [("new", "configuration: stream removed")]
    over_us = claimed["new"].terms.judged_until_us(START_US) + 1
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, Changes(over_us))
    assert fencing.claim_store(engine, checkpoint, STREAM_CONFIGS, now_us=over_us) == STREAM_CONFIGS


def test_a_mark_of_many_changes_is_cut(engine: Engine, checkpoint: Path) -> None:
    """At the length of a marker."""
    enter(engine, "q", 2)
    nodes = [f"node-{number:03}" for number in range(50)]
    fencing.claim_store(
        engine,
        checkpoint,
        {"orders": replace(STREAM_CONFIGS["orders"], pathway=Pathway.parse(" -> ".join(nodes)))},
        now_us=START_US,
    )
    (mark,) = read_markers(engine)
    assert len(mark.text) == MAX_CHARS
    assert mark.text.endswith("…")


def read_markers(engine: Engine) -> list[Marker]:
    """Return all markers."""
    with engine.begin() as connection:
        return query_markers(connection, None, 0, 2**62)


def test_a_problem_of_the_configuration_is_kept_until_it_is_mended(engine: Engine, checkpoint: Path) -> None:
    """Only the run that owns the store tells of it, and a run that begins has read the file."""
    enter(engine, "q", 2)
    fencing.claim_store(engine, checkpoint, STREAM_CONFIGS, run="first")
    fencing.record_config_problem(engine, "another", "a stranger's")
    fencing.record_config_problem(engine, "first", "hopwatch.toml:1: no path")
    assert read_problem(engine) == "hopwatch.toml:1: no path"
    fencing.record_config_problem(engine, "first", "")
    assert read_problem(engine) == ""
    fencing.record_config_problem(engine, "first", "another one")
    fencing.claim_store(engine, checkpoint, STREAM_CONFIGS, run="second")
    assert read_problem(engine) == ""


def read_problem(engine: Engine) -> str:
    """Return what the store says of the configuration."""
    with engine.begin() as connection:
        return fencing.read_notes(connection).config_problem
