"""``hopwatch init``: write a first configuration, from flags or questions, and show the code for each service."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from hopwatch.cli import console
from hopwatch.monitor.errors import ConfigurationError, SettingsError
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.settings import DEFAULTS, Settings, load_with_streams, locations
from hopwatch.monitor.settings.model import check_stream_name
from hopwatch.monitor.store import dialect
from hopwatch.monitor.texts.escaping import escape_line

EXAMPLE: Final = 'orders="ingest -> router -> sink"'
SPOOL: Final = DEFAULTS["transport"]["url"]
STORE: Final = DEFAULTS["store"]["url"]

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def command(
    config: Annotated[Path, typer.Option("--config", help="The file to write; it must not be there yet.")] = Path(
        "hopwatch.toml"
    ),
    stream: Annotated[
        list[str] | None,
        typer.Option("--stream", metavar="NAME=PATH", help=f"Such as {EXAMPLE}; named again: one chain more."),
    ] = None,
    transport: Annotated[
        str | None, typer.Option("--transport", metavar="URL", help="Where probes write: a spool, or a Kafka topic.")
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="URL", help="Where results are kept: SQLite or PostgreSQL.")
    ] = None,
) -> None:
    """Write a first configuration, and say which two lines each service needs.

    On a terminal it asks for what no flag says.
    """
    if config.exists():
        raise _already_exists(config)
    if not config.parent.is_dir():
        what = f"{config} cannot be written: the folder {config.parent} is not there"
        raise ConfigurationError(f"{what}: make it, or name another file with --config")
    if sys.stdin.isatty():
        chains = _parse_chains(stream) if stream else _ask_streams()
        url = transport or _ask(
            "Where do probes write, a spool or a Kafka topic?", SPOOL, locations.parse_transport_url
        )
        store = store or _ask("Where are results kept?", STORE, locations.parse_store_url)
    else:
        chains, url, store = _parse_chains(stream), transport or SPOOL, store or STORE
    text = format_configuration(chains, url, store)
    chosen = _check_text(text, config)
    try:
        with config.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _already_exists(config) from None
    except OSError as error:
        raise ConfigurationError(f"{config} cannot be written: {error.strerror or error}") from None
    _print_next_steps(config, chosen)


def format_configuration(chains: Mapping[str, Sequence[str]], transport: str, store: str) -> str:
    """Format a configuration of streams and the chains of their paths, without checking it."""
    tables = [f"[transport]\nurl = {_quote(transport)}\n", f"[store]\nurl = {_quote(store)}\n"]
    for name, path in chains.items():
        key = name if _BARE_KEY.fullmatch(name) else _quote(name)
        said = _quote(path[0]) if len(path) == 1 else f"[{', '.join(map(_quote, path))}]"
        tables.append(f"[streams.{key}]\npath = {said}\n")
    return "\n".join(tables)


def _quote(text: str) -> str:
    """Return a TOML string: a JSON string except for DEL, and for surrogate pairs."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parse_chains(asked: Sequence[str] | None) -> dict[str, list[str]]:
    """Parse the streams of flags; a repeated name adds a chain to its path."""
    if not asked:
        raise ConfigurationError(f"no stream is named: pass --stream NAME=PATH, such as --stream {EXAMPLE}")
    chains: dict[str, list[str]] = {}
    for one in asked:
        name, is_there, path = (part.strip() for part in one.partition("="))
        if not is_there:
            raise ConfigurationError(f"--stream takes NAME=PATH, such as {EXAMPLE}, got {one!r:.80}")
        chains.setdefault(name, []).append(path)
    return chains


def _ask_streams() -> dict[str, list[str]]:
    """Ask for streams until the answer is empty."""
    chains: dict[str, list[str]] = {}
    name = _ask("Name of the stream?", None, check_stream_name)
    while name:
        chains[name] = [_ask(f"Which nodes do messages of {name} pass, such as a -> b -> c?", None, _check_path)]
        name = _ask("Name of another stream? Enter for none", "", _new_name_validator(chains))
    return chains


def _new_name_validator(taken: Container[str]) -> Callable[[str], str]:
    """Return a validator for the name of another stream, or none."""

    def check(name: str) -> str:
        if name in taken:
            msg = f"there is a stream {name!r:.80} already: choose another name"
            raise ValueError(msg)
        return check_stream_name(name) if name else ""

    return check


def _check_path(text: str) -> str:
    Pathway.parse(text)
    return text


def _ask(question: str, default: str | None, check: Callable[[str], str]) -> str:
    """Ask until the answer is valid."""

    def checked(answer: str) -> str:
        try:
            return check(answer.strip())
        except ValueError as error:
            raise typer.BadParameter(escape_line(str(error))) from None

    try:
        return str(typer.prompt(question, default, value_proc=checked, err=True, show_default=bool(default)))
    except typer.Abort:
        raise KeyboardInterrupt from None


def _check_text(text: str, config: Path) -> Settings:
    """Load and check the settings of a text, as ``pathway check`` does.

    Raises:
        SettingsError: a setting is wrong; it names the key without a line, since there is no file yet.
        ConfigurationError: the folder cannot be written.
    """
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=config.parent, suffix=".toml") as file:
            file.write(text)
            file.flush()
            return load_with_streams(Path(file.name), flags={}, environ={}, named_by="")
    except SettingsError as error:
        found = [replace(problem, source="", line=None, column=None) for problem in error.problems]
        raise SettingsError(found) from None
    except OSError as error:
        raise ConfigurationError(f"{config} cannot be written: {error.strerror or error}") from None


def _already_exists(config: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{config} is there already, and nothing is overwritten: name another file with --config, or see what is "
        f"in it with hopwatch pathway check {config}"
    )


def _find_notes(chosen: Settings) -> Iterator[str]:
    """Yield notes about possible mistakes: missing folders, and streams of one node."""
    if chosen.transport.kafka_place is None and not chosen.transport.spool.exists():
        yield f"The spool {chosen.transport.spool} is not there yet: hopwatch run makes it, or the first probe."
    file = dialect.database_file(chosen.store.url)
    if file is not None and not file.parent.exists():
        yield f"The folder of the store {file.parent} is not there yet: hopwatch run makes it."
    for name, stream in chosen.streams.items():
        if len(stream.pathway.nodes) == 1:
            shows = "what is lost inside of it shows, what is lost on the way to another does not"
            yield f"The stream {name} has one node: {shows}."


def _print_next_steps(config: Path, chosen: Settings) -> None:
    """Print the code for each service, and the next steps."""
    words, data = console.stderr(), console.stdout()
    words.print(f"{config} is written. In each service, with the id and the event time of each message:")
    sink = json.dumps(chosen.transport.url, ensure_ascii=False)
    for name, stream in chosen.streams.items():
        for node in stream.pathway.nodes:
            words.print()
            data.print("from hopwatch import Probe")
            data.print(f'probe = Probe(stream="{name}", node="{node}", sink={sink})')
    words.print()
    for note in _find_notes(chosen):
        words.print(note)
    topic = "hopwatch topics create, then " if chosen.transport.kafka_place else ""
    words.print(f"Next: {topic}hopwatch doctor, then hopwatch run")
