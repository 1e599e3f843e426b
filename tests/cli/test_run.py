"""Tests of ``hopwatch run`` up to where Spark starts, and of what it says while Spark works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from sqlalchemy import text

from hopwatch.alerts.channels import routing
from hopwatch.alerts.channels.routing import Routing
from hopwatch.cli import run
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.subjects import Registry
from hopwatch.monitor import topics
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import DependencyError, TransportError
from hopwatch.monitor.rejudgement import Rejudged, Span
from hopwatch.monitor.results import Status, Verdict
from hopwatch.monitor.settings import load
from hopwatch.monitor.spark import job, session
from hopwatch.monitor.spark.sources import spool
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import dialect, instances, schema, writer
from hopwatch.monitor.store.subjects import SubjectStore
from tests.repository import ROOT
from tests.support.channel import Receiver
from tests.support.clock import ManualClock
from tests.support.conclusions import build_conclusion, write_conclusions
from tests.support.file_permissions import without_root
from tests.support.notifications import notification
from tests.support.outbox import put, states
from tests.support.spool import STREAM_CONFIGS
from tests.support.workspace import CONFIGURATION, Workspace

Captured = pytest.CaptureFixture[str]
FORMS: Final[tuple[list[str], ...]] = ([], ["--once"])


@pytest.fixture
def ready(workspace: Workspace) -> Workspace:
    """Return a place with an empty spool, where Spark must not be started."""
    (workspace.folder / "spool").mkdir()
    return workspace


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test fail that comes to start Spark: whatever is refused is refused before."""

    def start(_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "_build_session", lambda *_: start(None))


def refusal(workspace: Workspace, capsys: Captured, code: int, *flags: str) -> str:
    """Return the words of a run that is refused: all on stderr, after the name of the program."""
    assert workspace.run("run", *flags) == code
    told = capsys.readouterr()
    assert told.out == ""
    return told.err.removeprefix("hopwatch: ").removesuffix("\n")


# Configuration: exit 2


WRONG = {
    "no stream": (
        '[transport]\nurl = "spool:./spool"\n',
        '{config}: streams: no stream is declared: add a table [streams.NAME] with path = "a -> b -> c"',
    ),
    "unknown key": (
        CONFIGURATION + 'transits = "1s"\n',
        "{config}:10: streams.orders.transits: there is no such key; did you mean 'transit'?",
    ),
    "cycle": (CONFIGURATION.replace("a -> b", "a -> b -> a"), "{config}:9: streams.orders.path: a path leads on"),
    "node twice": (
        CONFIGURATION.replace("a -> b", "a -> b | b"),
        "{config}:9: streams.orders.path: a node stands once",
    ),
    "duration": (CONFIGURATION + 'settle = "soon"\n', "{config}:10: streams.orders.settle: "),
    "no TOML": ("[transport\n", "{config}:1:"),
    "broker": (
        CONFIGURATION.replace("spool:./spool", "amqp://h:1/t"),
        "{config}:3: transport.url: a transport is a spool,",
    ),
    "server": (
        CONFIGURATION.replace("sqlite:///./store.db", "mysql://h/d"),
        "{config}:5: store.url: a store is a SQLite file",
    ),
}


@pytest.mark.parametrize("flags", FORMS, ids=str)
@pytest.mark.parametrize(("configuration", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_configuration_starts_nothing(
    configuration: str, words: str, flags: list[str], ready: Workspace, capsys: Captured
) -> None:
    """Exit 2 with file, line and key; neither store nor working folder is made."""
    ready.configure(configuration)
    told = refusal(ready, capsys, 2, *flags)
    assert told.startswith(words.format(config=ready.config))
    assert sorted(path.name for path in ready.folder.iterdir()) == ["hopwatch.toml", "spool"]


def test_a_configuration_that_is_not_there_is_told(ready: Workspace, capsys: Captured) -> None:
    """Exit 2 with its name."""
    ready.config.unlink()
    assert refusal(ready, capsys, 2) == (
        f"the configuration {ready.config} cannot be read: No such file or directory; "
        "name a file that is there with --config, or let hopwatch init write one"
    )


# What the monitor stands on: exit 3


@pytest.mark.parametrize("flags", FORMS, ids=str)
def test_without_java_nothing_is_started(
    flags: list[str], ready: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line with the command that installs it."""
    monkeypatch.setenv("PATH", str(ready.folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert refusal(ready, capsys, 3, *flags) == (
        "Spark needs Java 17 or newer, none was found on the PATH: "
        "apt-get install openjdk-17-jre-headless (Debian, Ubuntu) or brew install openjdk@17 (macOS)"
    )
    assert not (ready.folder / "store.db").exists()


def test_once_tells_of_a_spool_that_is_not_there(workspace: Workspace, capsys: Captured) -> None:
    """With ``--once`` a missing spool is an error with the path."""
    assert refusal(workspace, capsys, 3, "--once") == (
        f"the spool {workspace.folder}/spool is a folder that probes write to, got nothing: "
        "start a probe with this sink, or correct [transport] url"
    )
    assert [path.name for path in workspace.folder.iterdir()] == ["hopwatch.toml"]


def test_a_stream_that_starts_before_the_first_probe_makes_the_spool_and_waits(
    workspace: Workspace, capsys: Captured
) -> None:
    """A stream that starts before its first probe makes the spool as a probe would, and says which sink to use."""
    workspace.run("run")
    (workspace.folder / "a-probe's").mkdir()
    assert (workspace.folder / "spool").stat().st_mode == (workspace.folder / "a-probe's").stat().st_mode
    words = capsys.readouterr().err.splitlines()[:2]
    assert words == [
        (
            f"hopwatch: no probe has written to the spool {workspace.folder}/spool yet; "
            f"the monitor waits for one with the sink spool:{workspace.folder}/spool"
        ),
        f"hopwatch: who may write to the spool: {spool.describe_rights(workspace.folder / 'spool')}",
    ]


REACHES_NOBODY: Final = (
    "hopwatch: no notification channel is configured: alerts are kept in the store and not sent; "
    "add a table [alerts.channels.NAME]: docs/ALERTS.md\n"
)


def test_a_stream_without_a_channel_says_that_alerts_reach_nobody(ready: Workspace, capsys: Captured) -> None:
    """Once, before Spark starts."""
    ready.run("run")
    err = capsys.readouterr().err
    assert err.count(REACHES_NOBODY) == 1
    assert err.index(REACHES_NOBODY) < err.index("starting Spark")


@pytest.mark.parametrize(
    ("more", "flags"),
    [
        ('[alerts.channels.ops]\nkind = "webhook"\nurl = "https://example.invalid/hook"\n', []),
        ("[alerts]\nenabled = false\n", []),
        ("", ["--once"]),
    ],
    ids=["a channel", "no rule", "--once"],
)
def test_who_is_told_or_wants_no_alerts_hears_nothing_of_it(
    more: str, flags: list[str], ready: Workspace, capsys: Captured
) -> None:
    """Nor does a run over all that is there: it tells nobody anyway."""
    ready.configure(CONFIGURATION + more).run("run", *flags)
    assert "reach nobody" not in capsys.readouterr().err


def test_the_pulse_of_an_earlier_run_is_no_probe(ready: Workspace, capsys: Captured) -> None:
    """A spool that has the monitor's own folder alone is still waited for."""
    (ready.folder / "spool" / "-hopwatch.monitor.h-1.1790000000000000-0123456789ab").mkdir()
    ready.run("run")
    assert "no probe has written" in capsys.readouterr().err


def test_a_spool_with_a_probe_is_not_waited_for(ready: Workspace, capsys: Captured) -> None:
    """Its folder is there before its first record."""
    (ready.folder / "spool" / "orders.a.h-1.1790000000000000").mkdir()
    ready.run("run")
    assert "no probe has written" not in capsys.readouterr().err


def test_a_spool_that_cannot_be_made_is_told(workspace: Workspace, capsys: Captured) -> None:
    """With what stands in the way."""
    (workspace.folder / "spool").symlink_to(workspace.folder / "gone")
    assert refusal(workspace, capsys, 3) == (
        f"the spool {workspace.folder}/spool is not there and cannot be made: File exists: "
        "make it a folder that this user can write, or correct [transport] url"
    )


@pytest.mark.parametrize("flags", FORMS, ids=str)
def test_a_spool_that_is_a_file_is_told(flags: list[str], workspace: Workspace, capsys: Captured) -> None:
    """A spool that is a file is an error, whatever is in it."""
    (workspace.folder / "spool").write_text("HWSP1\n")
    assert "is a folder that probes write to, got a file" in refusal(workspace, capsys, 3, *flags)


def test_a_spool_that_cannot_be_written_is_told(open_folder: Path, capsys: Captured) -> None:
    """A stream's own pulse has to go through it."""
    workspace = Workspace(open_folder).configure()
    workspace.config.chmod(0o644)
    (open_folder / "spool").mkdir(mode=0o555)
    with without_root():
        told = refusal(workspace, capsys, 3)
    assert told == (
        f"the spool {open_folder}/spool cannot be written by this user, "
        "so the monitor's pulse cannot go through it: grant write on it"
    )


@pytest.mark.parametrize("flags", FORMS, ids=str)
def test_a_second_monitor_is_refused(flags: list[str], ready: Workspace, capsys: Captured) -> None:
    """A second monitor exits with an error while the first one holds the store."""
    with dialect.lock_store(ready.store_url):
        told = refusal(ready, capsys, 3, *flags)
    assert told == (
        f"another monitor writes to the store {ready.folder}/store.db: "
        "stop it first, or name another store in [store] url"
    )


@pytest.mark.parametrize("flags", FORMS, ids=str)
def test_a_store_of_another_program_is_refused(flags: list[str], ready: Workspace, capsys: Captured) -> None:
    """Its tables are left alone."""
    with dialect.create_engine(ready.store_url).execution_options(writes=True).begin() as connection:
        connection.execute(text("CREATE TABLE customers (name TEXT)"))
    told = refusal(ready, capsys, 3, *flags)
    assert told.startswith(f"the database {ready.store_url} holds other tables than a store's: ")


def test_once_refuses_the_store_of_a_stream_before_it_reads(ready: Workspace, capsys: Captured) -> None:
    """Nobody waits for a reading that cannot be kept."""
    put_query(ready, "a-query")
    assert refusal(ready, capsys, 3, "--once") == (
        "the store holds the results of a stream, --once would replace them: "
        "name another store in [store] url, or the span to judge again by --from and --to"
    )


def test_a_stream_refuses_the_store_of_once(ready: Workspace, capsys: Captured) -> None:
    """Their windows would be mixed up."""
    put_query(ready, "once")
    assert refusal(ready, capsys, 3) == (
        f"the store {ready.store_url} holds the results of a --once run: "
        "name another store in [store] url, or delete it"
    )


def test_a_stream_refuses_a_checkpoint_that_does_not_fit(ready: Workspace, capsys: Captured) -> None:
    """The store is further than the working folder says."""
    put_query(ready, "a-query")
    told = refusal(ready, capsys, 3, "--workdir", str(ready.folder / "other"))
    assert told.startswith(
        f"the store was written up to batch 7, the checkpoint {ready.folder}/other/checkpoint has none"
    )


def put_query(workspace: Workspace, query: str) -> None:
    """Let a query have written to the store."""
    engine = dialect.create_engine(workspace.store_url)
    schema.prepare_store(engine)
    with engine.execution_options(writes=True).begin() as connection:
        writer.set_values(connection, {"query_id": query, "batch_id": "7"})


@pytest.mark.parametrize("flags", FORMS, ids=str)
def test_a_working_folder_that_cannot_be_written_is_told(flags: list[str], ready: Workspace, capsys: Captured) -> None:
    """With the flag that names another."""
    (ready.folder / "taken").write_text("")
    told = refusal(ready, capsys, 3, *flags, "--workdir", str(ready.folder / "taken"))
    assert told.splitlines()[-1].removeprefix("hopwatch: ") == (
        f"the working folder {ready.folder}/taken cannot be written: Not a directory; name another with --workdir"
    )


def test_a_working_folder_is_for_its_user_alone(ready: Workspace) -> None:
    """Ids of messages stand in checkpoint and log; so is the store."""
    ready.run("run")
    found = {name: oct((ready.folder / name).stat().st_mode & 0o777) for name in ("work", "store.db")}
    assert found == {"work": "0o700", "store.db": "0o600"}


# A span that is judged again


SPANS: Final = {
    "without --once": (
        ["--from", "2026-01-01", "--to", "2026-01-02"],
        "--from and --to say which windows --once judges again: add --once",
    ),
    "one end": (
        ["--once", "--from", "2026-01-01"],
        "a span to judge again has two ends: add --to with the start of a window",
    ),
    "other end": (
        ["--once", "--to", "2026-01-01"],
        "a span to judge again has two ends: add --from with the start of a window",
    ),
    "no time": (
        ["--once", "--from", "soon", "--to", "2026-01-01"],
        "--from is a time such as 2026-11-21T06:40:00Z, got 'soon'",
    ),
    "inside a window": (
        ["--once", "--from", "2026-01-01T00:00:30Z", "--to", "2026-01-02"],
        "--from is the start of a window, a whole minute UTC, got 2026-01-01T00:00:30Z",
    ),
    "a part of a second": (
        ["--once", "--from", "2026-01-01", "--to", "2026-01-02T00:00:00.000001Z"],
        "--to is the start of a window, a whole minute UTC, got 2026-01-02T00:00:00.000001Z",
    ),
    "backwards": (
        ["--once", "--from", "2026-01-02", "--to", "2026-01-01"],
        "--from 2026-01-02 is after --to 2026-01-01, and nothing starts between: let --from be the earlier",
    ),
    "to come": (
        ["--once", "--from", "2026-01-01", "--to", "9999-01-01"],
        "--to 9999-01-01 is in the future: let it be no later than now",
    ),
}


@pytest.mark.parametrize(("flags", "words"), SPANS.values(), ids=SPANS)
def test_a_span_that_is_none_starts_nothing(flags: list[str], words: str, ready: Workspace, capsys: Captured) -> None:
    """Exit 2 with one line; no store is made."""
    assert refusal(ready, capsys, 2, *flags) == words
    assert not (ready.folder / "store.db").exists()


def test_a_span_beside_a_running_monitor_is_refused(ready: Workspace, capsys: Captured) -> None:
    """One store is written by one monitor, whatever of it."""
    with dialect.lock_store(ready.store_url):
        told = refusal(ready, capsys, 3, "--once", "--from", "2026-01-01", "--to", "2026-01-02")
    assert told.startswith("another monitor")


def test_a_span_of_a_stream_that_can_change_is_refused_before_anything_is_read(
    ready: Workspace, capsys: Captured
) -> None:
    """Nobody waits for a reading that cannot be kept."""
    put_query(ready, "a-query")
    write_conclusions(dialect.create_engine(ready.store_url), build_conclusion())
    told = refusal(ready, capsys, 3, "--once", "--from", "2026-01-01", "--to", "2026-01-02")
    assert told.startswith("the store's own stream can still change the window 2026-01-01T00:00:00Z of 'orders'")


def test_a_span_that_was_judged_is_told_in_numbers(
    place: job.JobContext, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The last line counts windows: judged, judged otherwise, and without a record any more."""
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=list), stop=lambda: None)
    monkeypatch.setattr(session, "start_session", lambda *_, **__: spark)
    monkeypatch.setattr(job, "run_span", lambda *_: Rejudged(1_440, 3, 20))
    run._run_once(place, load(None, flags={}, environ={}), Span(0, 86_400_000_000))
    assert capsys.readouterr().err.splitlines()[-1] == (
        "windows judged again: 1,440, with another result: 3, left as they are because no record is there: 20; "
        "see hopwatch report --revisions"
    )


# Where results go

RESULTS: Final = f'{CONFIGURATION}[results]\ntopic = "kafka://127.0.0.1:1/results"\n'


def test_a_run_over_everything_begins_with_a_topic_that_answers(
    ready: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 3 before Spark is started, with what to look at."""
    monkeypatch.setattr(topics, "TIMEOUT_S", 0.2)
    told = refusal(ready.configure(RESULTS), capsys, 3, "--once")
    assert "127.0.0.1:1" in told


def test_a_topic_whose_subject_holds_other_schemas_is_refused(ready: Workspace, capsys: Captured) -> None:
    """Exit 2, also of a stream, which does not ask for brokers when it starts."""
    engine = dialect.create_engine(ready.store_url)
    schema.prepare_store(engine)
    Registry(SubjectStore(engine, ManualClock())).register("results-value", Schema.parse('"long"'))
    for flags in FORMS:
        told = refusal(ready.configure(RESULTS), capsys, 2, *flags)
        assert told.startswith("the subject results-value is not that of results: ")


def test_an_extra_that_is_missing_is_told(ready: Workspace) -> None:
    """Of the registry, which results need and a monitor without them does not."""
    program = "import sys; sys.modules['avro'] = None; from hopwatch.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = ["run", "--once", "--config", str(ready.configure(RESULTS).config)]
    ended = subprocess.run(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    told = "hopwatch: the Python package 'avro.schema' is not installed: pip install 'hopwatch[monitor,taps,gate]'"
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (3, told)


def test_a_monitor_without_results_needs_no_extra_of_theirs() -> None:
    """A stream loads no part of the registry, which only results that are published need."""
    hidden = "import sys; sys.modules['avro'] = None; import hopwatch.api.publisher_thread"
    program = f"{hidden}; print([name for name in sys.modules if name.startswith('hopwatch.gate')])"
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert told.stdout == "[]\n"


# Whom it tells


@pytest.mark.parametrize("flags", FORMS, ids=str)
def test_a_stream_delivers_what_waits_and_once_tells_nobody(
    flags: list[str], ready: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Spark is there, and though it does not come: what a monitor that died has left is not forgotten."""
    engine = dialect.create_engine(ready.store_url)
    schema.prepare_store(engine)
    put(engine, notification())
    pager = Receiver(ManualClock())
    monkeypatch.setattr(routing, "open_routing", lambda _: Routing({"pager": pager}, lambda _: ("pager",)))
    ready.run("run", *flags)
    assert [delivery.notification for _, delivery in pager.heard] == ([] if flags else [notification()])
    assert pager.is_closed is not bool(flags)
    assert states(engine) == {("pager", "waiting" if flags else "sent"): 1}


def test_what_a_batch_has_committed_is_delivered_and_told(capsys: Captured) -> None:
    """The dispatcher and the publisher are woken first."""
    woken: list[str] = []
    wake = lambda: woken.append(capsys.readouterr().err)  # noqa: E731 - what is called is the point
    run._on_commit((wake, wake), [replace(build_conclusion().result, verdict=Verdict.CLEAN)])
    assert woken == ["", ""]
    assert "CLEAN" in capsys.readouterr().err


def test_a_stream_that_is_stopped_notes_it(ready: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what is shown of its store later is as of then, and no monitor that died."""
    monkeypatch.setattr(run, "_watch_stream", lambda *_: None)
    before_us = SystemClock().now_us()
    assert ready.run("run") == 0
    with schema.open_snapshot(dialect.create_engine(ready.store_url)) as connection:
        stopped_us = instances.read_progress(connection).stopped_us
    assert stopped_us is not None
    assert before_us <= stopped_us <= SystemClock().now_us()


def test_a_stream_that_ctrl_c_ends_while_spark_starts_notes_it(
    ready: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python ends it then, and the exit code is that of the signal."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_watch_stream", end)
    assert ready.run("run") == 130
    with schema.open_snapshot(dialect.create_engine(ready.store_url)) as connection:
        assert instances.read_progress(connection).stopped_us is not None


def test_a_stream_that_fails_notes_no_stop(ready: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that fails is not noted as stopped."""

    def fail(*_: object) -> None:
        raise TransportError("the spool is gone")

    monkeypatch.setattr(run, "_watch_stream", fail)
    assert ready.run("run") == 3
    with schema.open_snapshot(dialect.create_engine(ready.store_url)) as connection:
        assert instances.read_progress(connection).stopped_us is None


def test_what_is_logged_goes_to_stderr(ready: Workspace, capsys: Captured) -> None:
    """Logs go to stderr, those of a dispatcher too, as stdout is for data."""
    engine = dialect.create_engine(ready.store_url)
    schema.prepare_store(engine)
    put(engine, notification(), channels=("old",))
    ready.run("run")
    told = capsys.readouterr()
    assert told.out == ""
    assert "what waits for a channel is given up: no channel of this name is configured" in told.err
    assert "channel=old known=none" in told.err


# While Spark works


@pytest.fixture
def place(ready: Workspace) -> job.JobContext:
    """Return where a job reads and writes."""
    folder = ready.folder
    return job.JobContext(
        SpoolSource(folder / "spool"), dialect.create_engine(ready.store_url), STREAM_CONFIGS, folder / "work"
    )


def test_a_run_over_everything_whose_java_is_gone_is_told(
    place: job.JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a stream."""
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=list), stop=lambda: None)
    monkeypatch.setattr(session, "start_session", lambda *_, **__: spark)
    monkeypatch.setattr(session, "java_status", lambda: -9)

    def fail(*_: object) -> None:
        raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr(job, "run_once", fail)
    with pytest.raises(DependencyError, match=r"^Java was killed: by the system, for want of memory, or by somebody;"):
        run._run_once(place, load(None, flags={}, environ={}))


@pytest.mark.parametrize("span", [None, Span(0, 86_400_000_000)], ids=["all", "a span"])
def test_a_run_once_that_ctrl_c_ends_is_told(
    span: Span | None, place: job.JobContext, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """In one line, and Spark is stopped."""
    stopped: list[bool] = []
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=list), stop=lambda: stopped.append(True))
    monkeypatch.setattr(session, "start_session", lambda *_, **__: spark)
    for name in ("run_once", "run_span"):
        monkeypatch.setattr(job, name, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        run._run_once(place, load(None, flags={}, environ={}), span)
    assert stopped == [True]
    assert capsys.readouterr().err == "hopwatch: interrupted; --once writes all of its windows or none\n"


@pytest.mark.parametrize("cause", ["No space left on device", "odd"])
def test_a_run_over_everything_that_fails_is_told_by_its_cause(
    cause: str, place: job.JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cause that has a name is a dependency that is down, any other is told as it is."""
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=list))
    monkeypatch.setattr(session, "start_session", lambda *_, **__: spark)

    def fail(*_: object) -> None:
        raise PySparkException(cause)

    monkeypatch.setattr(job, "run_once", fail)
    with pytest.raises((DependencyError, PySparkException)) as caught:
        run._run_once(place, load(None, flags={}, environ={}))
    assert str(caught.value) == (
        "the disk is full: free some space and start again, nothing is lost" if "space" in cause else "odd"
    )


def test_windows_are_told_as_they_become_final(capsys: Captured) -> None:
    """One line each on stderr; those that are still open are not worth one."""
    base = replace(
        build_conclusion().result,
        known=1_234,
        delivered=1_233,
        lost=1,
        lost_lower=1,
        lost_upper=1,
        verdict=Verdict.LOSSY,
    )
    results = [base, replace(base, status=Status.PROVISIONAL), replace(base, status=Status.AMENDED)]
    run._print_results(results)
    told = capsys.readouterr()
    line = "2026-01-01T00:00:00Z orders {} LOSSY: 1,234 known, 1,233 delivered, 1 lost"
    assert (told.out, told.err.splitlines()) == ("", [line.format("FINAL"), line.format("AMENDED")])
