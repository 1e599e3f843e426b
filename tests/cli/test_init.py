"""Tests of ``hopwatch init``: what it writes, what it asks, what it says, and what it refuses."""

from __future__ import annotations

import io
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.cli import init
from hopwatch.cli.main import main
from hopwatch.monitor.settings import load_with_streams

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file to write."""
    return tmp_path / "hopwatch.toml"


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no terminal."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def answering(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    """Have a terminal at which somebody answers."""
    terminal = io.StringIO("".join(f"{answer}\n" for answer in answers))
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", terminal)


def run(file: Path, *arguments: str) -> int:
    """Run the command."""
    return main(["init", "--config", str(file), *arguments])


@pytest.mark.usefixtures("piped")
def test_flags_alone_write_a_configuration_that_is_right(file: Path, capsys: Captured) -> None:
    """Of streams with their paths; a stream that is named again has one chain more; spool and store have defaults."""
    orders = ("--stream", "orders=ingest -> router", "--stream", "orders=router -> eu | us")
    assert run(file, *orders, "--stream", "v1.bills=ingest") == 0
    assert file.read_text("utf-8") == (
        '[transport]\nurl = "spool:./var/spool"\n\n[store]\nurl = "sqlite:///./var/hopwatch.db"\n\n'
        '[streams.orders]\npath = ["ingest -> router", "router -> eu | us"]\n\n[streams."v1.bills"]\npath = "ingest"\n'
    )
    assert main(["pathway", "check", str(file)]) == 0
    capsys.readouterr()


@pytest.mark.usefixtures("piped")
def test_each_service_is_told_its_two_lines(file: Path, capsys: Captured) -> None:
    """On stdout, in Python: its stream, its node, and the sink from wherever the service runs; the rest on stderr."""
    assert run(file, "--stream", "orders=ingest -> router") == 0
    out, err = capsys.readouterr()
    spool = f"spool:{file.parent}/var/spool"
    assert out == "".join(
        f'from hopwatch import Probe\nprobe = Probe(stream="orders", node="{node}", sink="{spool}")\n'
        for node in ("ingest", "router")
    )
    assert err.splitlines()[0] == f"{file} is written. In each service, with the id and the event time of each message:"
    assert err.splitlines()[-1] == "Next: hopwatch doctor, then hopwatch run"
    compile(out, "services", "exec")


@pytest.mark.usefixtures("piped")
def test_kafka_and_postgresql_are_named_by_flags(file: Path, capsys: Captured) -> None:
    """And the topic is made first."""
    urls = ("--transport", "kafka://127.0.0.1:9092/obs", "--store", "postgresql+psycopg://me@db/hopwatch")
    assert run(file, "--stream", "orders=a -> b", *urls) == 0
    chosen = load_with_streams(file, flags={}, environ={})
    assert (chosen.transport.url, chosen.store.url) == (urls[1], urls[3])
    out, err = capsys.readouterr()
    assert 'sink="kafka://127.0.0.1:9092/obs")' in out
    assert err.endswith("Next: hopwatch topics create, then hopwatch doctor, then hopwatch run\n")


def test_a_terminal_is_asked_for_what_no_flag_says(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """An answer that cannot be is told, and asked for again; Enter takes what is offered."""
    answers = ("a b", "orders", "a ->", "a -> b", "orders", "bills", "a", "", "nowhere", "spool:./here", "")
    answering(monkeypatch, *answers)
    assert run(file) == 0
    told = tomllib.loads(file.read_text("utf-8"))
    assert told["streams"] == {"orders": {"path": "a -> b"}, "bills": {"path": "a"}}
    assert (told["transport"]["url"], told["store"]["url"]) == ("spool:./here", "sqlite:///./var/hopwatch.db")
    err = capsys.readouterr().err
    assert "a stream's name is 1 to 128 of the characters A-Za-z0-9._-, got 'a b'" in err
    assert "there is a stream 'orders' already: choose another name" in err
    assert "a transport is a spool" in err


def test_flags_are_not_asked_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all of them there is no question."""
    answering(monkeypatch)
    assert run(file, "--stream", "x=a", "--transport", "spool:./s", "--store", "sqlite:///./x.db") == 0


def test_who_gives_up_leaves_no_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when Ctrl-C is pressed."""
    answering(monkeypatch, "orders")
    assert run(file) == 130
    assert list(file.parent.iterdir()) == []


@pytest.mark.usefixtures("piped")
def test_a_file_that_is_there_is_not_overwritten(file: Path, capsys: Captured) -> None:
    """Not even an empty one, nor one that came meanwhile."""
    file.write_text("")
    assert run(file, "--stream", "x=a") == 2
    assert file.read_text() == ""
    assert capsys.readouterr().err == (
        f"hopwatch: {file} is there already, and nothing is overwritten: name another file with --config, or see what "
        f"is in it with hopwatch pathway check {file}\n"
    )


@pytest.mark.usefixtures("piped")
def test_a_file_that_came_meanwhile_is_not_overwritten(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Another one may be as quick."""
    monkeypatch.setattr(init, "_check_text", lambda *_: file.write_text("mine"))
    assert run(file, "--stream", "x=a") == 2
    assert file.read_text() == "mine"
    assert "is there already, and nothing is overwritten" in capsys.readouterr().err


@pytest.mark.usefixtures("piped")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], 'no stream is named: pass --stream NAME=PATH, such as --stream orders="ingest -> router -> sink"'),
        (["--stream", "a"], "--stream takes NAME=PATH, such as orders=\"ingest -> router -> sink\", got 'a'"),
        (["--stream", "a=b ->"], "streams.a.path"),
        (["--stream", "x y=b"], "a stream's name is 1 to 128 of the characters A-Za-z0-9._-, got 'x y'"),
        (["--stream", "a=b", "--transport", "nowhere"], "transport.url: a transport is a spool"),
        (["--stream", "a=b", "--store", "nowhere"], "store.url: a store is a SQLite file"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_written(
    arguments: list[str], told: str, file: Path, capsys: Captured
) -> None:
    """By its key, as ``pathway check`` tells it, and without the line of a file that is not there."""
    assert run(file, *arguments) == 2
    out, err = capsys.readouterr()
    assert (out, told in err, ".toml" in err) == ("", True, False)
    assert list(file.parent.iterdir()) == []


@pytest.mark.usefixtures("piped")
def test_all_that_is_wrong_is_told_at_once(file: Path, capsys: Captured) -> None:
    """A line each."""
    assert run(file, "--stream", "a=b -> b", "--transport", "x", "--store", "y") == 2
    assert [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()] == [
        "transport.url",
        "store.url",
        "streams.a.path",
    ]


@pytest.mark.usefixtures("piped")
def test_a_folder_that_is_not_there_is_told(tmp_path: Path, capsys: Captured) -> None:
    """With the file that was asked for, and what to do; it may be misspelt, and is not made."""
    assert run(tmp_path / "no" / "hopwatch.toml", "--stream", "x=a -> b") == 2
    assert capsys.readouterr().err == (
        f"hopwatch: {tmp_path}/no/hopwatch.toml cannot be written: the folder {tmp_path}/no is not there: make it, or "
        "name another file with --config\n"
    )
    assert list(tmp_path.iterdir()) == []


def notes(err: str) -> list[str]:
    """Return what is said between the services and what comes next."""
    return err.strip().splitlines()[1:-1]


@pytest.mark.usefixtures("piped")
def test_folders_that_are_not_there_yet_are_named(file: Path, capsys: Captured) -> None:
    """With who makes them; one that is misspelt is seen at once."""
    store = ("--store", f"sqlite:///{file.parent}/data/x.db")
    assert run(file, "--stream", "x=a -> b", "--transport", f"spool:{file.parent}/obs", *store) == 0
    assert [line for line in notes(capsys.readouterr().err) if line] == [
        f"The spool {file.parent}/obs is not there yet: hopwatch run makes it, or the first probe.",
        f"The folder of the store {file.parent}/data is not there yet: hopwatch run makes it.",
    ]
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.usefixtures("piped")
def test_folders_that_are_there_need_no_word(file: Path, capsys: Captured) -> None:
    """Nor does a topic, or a database on a server."""
    for folder in ("obs", "data"):
        (file.parent / folder).mkdir()
    store = ("--store", f"sqlite:///{file.parent}/data/x.db")
    assert run(file, "--stream", "x=a -> b", "--transport", f"spool:{file.parent}/obs", *store) == 0
    assert not any(notes(capsys.readouterr().err))
    file.unlink()
    urls = ("--transport", "kafka://127.0.0.1:9092/obs", "--store", "postgresql+psycopg://me@db/hopwatch")
    assert run(file, "--stream", "x=a -> b", *urls) == 0
    assert not any(notes(capsys.readouterr().err))


@pytest.mark.usefixtures("piped")
def test_a_stream_of_one_node_is_taken_with_a_word(file: Path, capsys: Captured) -> None:
    """A stream of one node is configured, and a note says which loss it cannot show."""
    (file.parent / "var" / "spool").mkdir(parents=True)
    assert run(file, "--stream", "x=a -> b", "--stream", "bills=a") == 0
    assert [line for line in notes(capsys.readouterr().err) if line] == [
        "The stream bills has one node: what is lost inside of it shows, what is lost on the way to another does not."
    ]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), min_size=1, max_size=3), TEXTS, TEXTS)
def test_what_is_written_says_what_was_asked(chains: dict[str, list[str]], transport: str, store: str) -> None:
    """The written configuration is read back as it was asked for, whatever characters it has."""
    told = tomllib.loads(init.format_configuration(chains, transport, store))
    assert (told["transport"]["url"], told["store"]["url"]) == (transport, store)
    paths = {name: of["path"] if isinstance(of["path"], list) else [of["path"]] for name, of in told["streams"].items()}
    assert paths == chains
