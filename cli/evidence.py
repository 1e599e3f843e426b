"""``hopwatch evidence``: export final windows as a signed file, and verify one."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.progress import Progress

from hopwatch import __version__
from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect, reader, schema
from hopwatch.monitor.store.tables import SCHEMA_VERSION
from hopwatch.monitor.texts.moments import parse_range_us
from hopwatch.probes.contract.limits import WINDOW_US

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hopwatch.monitor.evidence.contents import EvidenceRange, StreamCounts
    from hopwatch.monitor.evidence.signature import Signer
    from hopwatch.monitor.evidence.verification import Verification
    from hopwatch.monitor.settings import Settings

FINDING_EXIT_CODE: Final = 1

command = typer.Typer(help="Export final windows as a signed file, and verify one.", no_args_is_help=True)


@command.callback()
def _evidence() -> None:
    """Export final windows as a signed file, and verify one."""


@command.command()
def export(  # noqa: PLR0913, PLR0917 - one a flag
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist.")],
    from_time: Annotated[str, typer.Option("--from", help="Windows from this moment on, ISO 8601.")],
    to_time: Annotated[str, typer.Option("--to", help="Windows that start before this moment.")],
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[
        list[str] | None, typer.Option("--stream", help="Only this stream; may be given again for others.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", help="Ed25519 private key in PEM that signs.")] = None,
    sign_command: Annotated[
        str | None,
        typer.Option("--sign-command", metavar="COMMAND", help="Signs what is on its stdin; base64 on stdout."),
    ] = None,
    after: Annotated[
        Path | None, typer.Option("--after", metavar="FILE", help="The file of the range before, which this one names.")
    ] = None,
    *,
    allow_open: Annotated[
        bool, typer.Option("--allow-open", help="Leave out windows that are not final, and count them.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Export final windows as a signed chain of hashes.

    With all ids of what is missing, and the rules by which the windows were judged.
    """
    from hopwatch.monitor.evidence.contents import EvidenceRange

    chosen = load_settings(config)
    for name in stream or ():
        chosen.check_stream(name)
    from_us, to_us = _parse_range(from_time, to_time)
    signer = _build_signer(key, sign_command)
    previous = None if after is None else _read_head(after)
    if file.exists():
        raise ConfigurationError(f"{file} exists already: name another file, evidence is never overwritten")
    schema.require_store(chosen.store.url)
    with schema.open_snapshot(dialect.create_engine(chosen.store.url)) as connection:
        streams = tuple(dict.fromkeys(stream)) if stream else tuple(reader.read_stream_names(connection, None))
        wanted = EvidenceRange(streams, from_us, to_us, allow_open)
        head, counts = _write_file(file, connection, wanted, chosen, (signer, previous))
    _print_export(file, head, counts, as_json=as_json)


@command.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to verify.")],
    public_key: Annotated[Path, typer.Option("--public-key", help="Ed25519 public key in PEM of whoever signed.")],
    after: Annotated[
        Path | None, typer.Option("--after", metavar="FILE", help="The file that it is to follow; verified, too.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Verify a file of evidence. Exit 1 if it is not sound.

    Each line is checked against its hash, and the last hash against the signature. No store is needed.
    """
    from hopwatch.monitor.evidence.signature import load_public_key
    from hopwatch.monitor.evidence.verification import verify_file, verify_succession

    signer = load_public_key(public_key)
    found = verify_file(file, signer)
    if after is not None:
        verify_succession(found, verify_file(after, signer))
    if as_json:
        console.emit_json(_verification_to_json(found))
    else:
        _print_verification(file, found)
    if not found.is_sound:
        raise typer.Exit(FINDING_EXIT_CODE)


def _parse_range(from_time: str, to_time: str) -> tuple[int, int]:
    from_us, to_us = parse_range_us(from_time, to_time)
    assert from_us is not None  # noqa: S101 - both flags are required
    assert to_us is not None  # noqa: S101
    for flag, moment_us in (("--from", from_us), ("--to", to_us)):
        if moment_us % WINDOW_US:
            raise ConfigurationError(f"{flag} is a whole UTC minute, as windows start, got {format_iso(moment_us)}")
    return from_us, to_us


def _build_signer(key: Path | None, sign_command: str | None) -> Signer:
    from hopwatch.monitor.evidence.signature import build_command_signer, load_signer

    if key is not None and sign_command is None:
        return load_signer(key)
    if sign_command is not None and key is None:
        return build_command_signer(sign_command)
    raise ConfigurationError("evidence is signed: give --key FILE or --sign-command COMMAND, one of them")


def _read_head(file: Path) -> str:
    """Read the last hash of the file before.

    Raises:
        ConfigurationError: it cannot be read, or is not whole.
    """
    from hopwatch.monitor.evidence.verification import read_head

    head = read_head(file)
    if head is None:
        raise ConfigurationError(f"--after {file} is no whole file of evidence: run hopwatch evidence verify")
    return head


def _write_file(
    file: Path,
    connection: Connection,
    wanted: EvidenceRange,
    chosen: Settings,
    seal: tuple[Signer, str | None],
) -> tuple[str, dict[str, StreamCounts]]:
    """Write the file, and return the last hash and what was counted.

    Raises:
        ConfigurationError: windows are not final, the file cannot be written, or the command did not sign.
    """
    from hopwatch.monitor.evidence import contents
    from hopwatch.monitor.evidence.chain import HashChain
    from hopwatch.monitor.evidence.signature import build_message

    if not wanted.allow_open and (open_windows := contents.find_open_windows(connection, wanted)):
        stream, start_us = open_windows[0]
        told = f"windows of {stream} from {format_iso(start_us)} on are not final yet"
        raise ConfigurationError(f"{told}: export a range that ends before, or leave them out with --allow-open")
    signer, previous = seal
    facts = {"hopwatch": __version__, "schema": SCHEMA_VERSION, "exported": format_iso(SystemClock().now_us())}
    configs = chosen.stream_configs()
    chain, counts = HashChain(), dict[str, Any]()
    with _open_new(file) as out, _show_progress(wanted) as advance:
        out.write(chain.build_line(contents.build_header(connection, wanted, configs, facts, previous)))
        for value in contents.iterate_windows(connection, wanted, counts):
            out.write(chain.build_line(value))
            advance(value["kind"] == "window")
        out.write(chain.build_line(contents.build_end(counts)))
        signature = b64encode(signer(build_message(chain.head))).decode("ascii")
        out.write(json.dumps({"signature": signature}).encode() + b"\n")
    return chain.head, counts


@contextmanager
def _open_new(file: Path) -> Iterator[IO[bytes]]:
    """Open a file that is there once it is whole, and not at all if it is not.

    Raises:
        ConfigurationError: it cannot be written, or has come to be meanwhile.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with part.open("xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        # A link, as a rename would replace a file that has come to be meanwhile.
        os.link(part, file)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            part.unlink()


@contextmanager
def _show_progress(wanted: EvidenceRange) -> Iterator[Any]:
    words = console.stderr()
    with Progress(console=words, transient=True, disable=not words.is_terminal) as bar:
        total = len(wanted.streams) * (wanted.to_us - wanted.from_us) // WINDOW_US
        task = bar.add_task("exporting windows", total=total)
        yield lambda count: bar.advance(task, count)


def _print_export(file: Path, head: str, counts: dict[str, StreamCounts], *, as_json: bool) -> None:
    if as_json:
        streams = [
            {
                "stream": name,
                "windows": of.windows,
                "lost_ids": of.lost_ids,
                "left_out": of.left_out,
                "absent": of.absent,
            }
            for name, of in counts.items()
        ]
        console.emit_json({"file": str(file), "hash": head, "streams": streams})
        return
    words = console.stdout()
    for name, of in counts.items():
        told = f"{name}: {of.windows:,} final windows, {of.lost_ids:,} ids of what is missing"
        words.print(f"{told}{_describe_gaps(of.left_out, of.absent)}")
    words.print(f"{file} is written and signed, its last hash is {head}")


def _describe_gaps(left_out: int, absent: int) -> str:
    parts = []
    if left_out:
        parts.append(f"{left_out:,} left out, as they are not final")
    if absent:
        parts.append(f"{absent:,} minutes of which the store has no window")
    return "".join(f", {part}" for part in parts)


def _verification_to_json(found: Verification) -> dict[str, Any]:
    header = found.header or {}
    return {
        "sound": found.is_sound,
        "findings": found.findings,
        "from": header.get("from"),
        "to": header.get("to"),
        "exported": header.get("exported"),
        "hash": found.head or None,
        "previous": header.get("previous"),
        "streams": (found.end or {}).get("streams", []),
    }


def _print_verification(file: Path, found: Verification) -> None:
    words = console.stdout()
    for one in found.findings:
        words.print(f"{file}: {one}")
    if not found.is_sound:
        words.print(f"{file} is NOT sound")
        return
    told = _verification_to_json(found)
    for one in told["streams"]:
        gaps = _describe_gaps(one["left_out"], one["absent"])
        words.print(
            f"{one['stream']}: {one['windows']:,} final windows, {one['lost_ids']:,} ids of what is missing{gaps}"
        )
    words.print(f"{file} is sound: from {told['from']} to {told['to']}, exported {told['exported']}")
