"""``hopwatch schema``: manage the schemas in the store, without a server."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table

from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, AsJson, Config, load_settings
from hopwatch.cli.remote_registry import RegistryUrl, open_remote_registry
from hopwatch.cli.schema_files import read_schema
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError, TransportError
from hopwatch.monitor.store import dialect
from hopwatch.monitor.store import schema as store_schema

if TYPE_CHECKING:
    from hopwatch.gate.registry.avro_schema import Schema
    from hopwatch.gate.registry.compatibility import CompatibilityLevel, Conflict
    from hopwatch.gate.registry.remote_check import RemoteVerdict
    from hopwatch.gate.registry.schema_store import SchemaStore, SubjectVersion
    from hopwatch.gate.registry.subjects import Registry, UnknownError

FINDING_EXIT_CODE: Final = 1

Subject = Annotated[str, typer.Option("--subject", help="The subject.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="An Avro schema or protocol, JSON.")]
TypeName = Annotated[
    str | None, typer.Option("--type", metavar="NAME", help="Of a protocol the type; the one that no other uses.")
]
Others = Annotated[
    list[Path] | None,
    typer.Option("--with", metavar="FILE", help="A schema or protocol whose types it uses; may be repeated."),
]


class Language(StrEnum):
    """Language of a generated module."""

    PYTHON = "python"


command = typer.Typer(help="List, check and register schemas.", no_args_is_help=True)


@command.callback()
def _schema() -> None:
    """List, check and register schemas."""


@command.command("list")
def list_(
    config: Config = DEFAULT_CONFIG,
    *,
    subject: Annotated[str | None, typer.Option("--subject", help="Only this one, all of its versions.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the latest version of each subject, or all versions of one."""
    from hopwatch.gate.registry.subjects import UnknownError

    registry = _open_registry(config, is_made=False)
    names = [subject] if subject is not None else list(registry.subjects())
    try:
        found = _list_versions(registry, names, is_whole=subject is not None)
    except UnknownError as error:
        raise ConfigurationError(f"{error}: hopwatch schema list names those that there are") from None
    if as_json:
        console.emit_json({"schemas": found})
        return
    if not found:
        console.stderr().print("no schema is registered yet: hopwatch schema register --subject S FILE")
        return
    table = Table(box=None)
    for name in ("subject", "version", "id", "fingerprint", "compatibility"):
        table.add_column(name, overflow="fold")
    for one in found:
        table.add_row(*(str(value) for value in one.values()))
    console.stdout().print(table)


def _list_versions(registry: Registry, names: list[str], *, is_whole: bool) -> list[dict[str, str | int]]:
    """Return all versions of some subjects, or the latest of each."""
    rows = []
    for name in names:
        level = registry.level(name)
        rows += [_version_to_row(name, entry, level) for entry in registry.entries(name)[0 if is_whole else -1 :]]
    return rows


def _version_to_row(subject: str, entry: SubjectVersion, level: CompatibilityLevel) -> dict[str, str | int]:
    from hopwatch.gate.registry.subjects import parse_stored

    return {
        "subject": subject,
        "version": entry.version,
        "id": entry.schema.number,
        "fingerprint": parse_stored(entry.schema.text).fingerprint.hex(),
        "compatibility": level.value,
    }


@command.command()
def register(  # noqa: PLR0913 - one parameter a flag
    file: File,
    subject: Subject,
    config: Config = DEFAULT_CONFIG,
    *,
    type_name: TypeName = None,
    others: Others = None,
    as_json: AsJson = False,
) -> None:
    """Make a schema the newest version of a subject.

    It ends with 1 and each field that is in the way if readers would break.
    """
    from hopwatch.gate.registry.subjects import IncompatibleError, MeaningError

    _check_name(subject)
    new = read_schema(file, type_name, others or [])
    try:
        made = _open_registry(config, is_made=True).register(subject, new)
    except IncompatibleError as error:
        _print_conflicts(subject, new, error.conflicts, as_json=as_json)
        raise typer.Exit(FINDING_EXIT_CODE) from None
    except MeaningError as error:
        raise _report_refusal(subject, error, as_json=as_json) from None
    fingerprint = made.schema.fingerprint.hex()
    if as_json:
        console.emit_json(
            {"subject": subject, "version": made.entry.version, "fingerprint": fingerprint, "is_new": made.is_new}
        )
    else:
        what = "registered" if made.is_new else "there already"
        console.stdout().print(f"{what}: version {made.entry.version} of {subject}, {fingerprint}")


@command.command()
def check(  # noqa: PLR0913 - one parameter a flag
    file: File,
    subject: Subject,
    config: Config = DEFAULT_CONFIG,
    *,
    type_name: TypeName = None,
    others: Others = None,
    registry: RegistryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Check whether a schema would be accepted.

    By the configured store, or by the registry behind --registry. Nothing is registered. It ends with 1 and each field
    that is in the way if readers would break.
    """
    from hopwatch.gate.registry.subjects import MeaningError

    _check_name(subject)
    new = read_schema(file, type_name, others or [])
    reason = ""
    try:
        if registry is None:
            level, found = _open_registry(config, is_made=False).conflicts(subject, new)
        else:
            level, found, reason = _check_remotely(registry, subject, new)
    except MeaningError as error:
        raise _report_refusal(subject, error, as_json=as_json) from None
    if reason and not found:
        raise _report_refusal(subject, reason, as_json=as_json)
    if found or as_json:
        _print_conflicts(subject, new, found, as_json=as_json)
    else:
        console.stdout().print(f"it fits {subject}, which is {level.value}")
    if found:
        raise typer.Exit(FINDING_EXIT_CODE)


@command.command("export")
def export_(
    config: Config = DEFAULT_CONFIG,
    *,
    out: Annotated[Path | None, typer.Option("--out", help="The file; stdout without it.")] = None,
) -> None:
    """Write all schemas, subjects and levels as one file.

    The same registry gives the same file.
    """
    from hopwatch.gate.registry.transfer import export_registry

    text = export_registry(_open_store(config, is_made=False)).decode()
    if out is None:
        console.emit_text(text)
    else:
        _write_file(out, text)


@command.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What hopwatch schema export has written.")],
    config: Config = DEFAULT_CONFIG,
    *,
    as_json: AsJson = False,
) -> None:
    """Take such a file into the store, all of it or nothing.

    What is there already stays. It ends with 1 where the store says otherwise than the file.
    """
    from hopwatch.gate.registry.transfer import ContradictionError, FileFormError, import_registry

    try:
        data = file.read_bytes()
    except OSError as error:
        told = f"the file {file} cannot be read: {error.strerror}"
        raise ConfigurationError(f"{told}: name one of hopwatch schema export") from None
    try:
        counts = import_registry(_open_store(config, is_made=True), data)
    except FileFormError as error:
        raise ConfigurationError(f"{file}: {error}") from None
    except ContradictionError as error:
        if as_json:
            console.emit_json({"schemas": 0, "versions": 0, "levels": 0, "reason": str(error)})
        else:
            console.stdout().print(f"nothing is imported: {error}")
        raise typer.Exit(FINDING_EXIT_CODE) from None
    if as_json:
        console.emit_json(counts._asdict())
    else:
        told = f"{counts.schemas:,} schemas, {counts.versions:,} versions and {counts.levels:,} levels are new"
        console.stdout().print(told)


@command.command()
def restore(
    version: Annotated[int, typer.Argument(metavar="VERSION", min=1, help="The version that is to be the newest.")],
    subject: Subject,
    config: Config = DEFAULT_CONFIG,
    *,
    as_json: AsJson = False,
) -> None:
    """Make an old version of a subject the newest once more.

    Compatibility is not checked. The gate uses it again within a second.
    """
    from hopwatch.gate.registry.subjects import UnknownError

    try:
        made = _open_registry(config, is_made=False).restore(subject, version)
    except UnknownError as error:
        raise ConfigurationError(_format_unknown(error, subject)) from None
    if as_json:
        console.emit_json({"subject": subject, "version": made.entry.version, "is_new": made.is_new})
        return
    what = f"version {made.entry.version}, which says what version {version} says," if made.is_new else "it already"
    console.stdout().print(f"the newest of {subject} is {what}".rstrip(","))


@command.command()
def level(
    subject: Subject,
    to: Annotated[str | None, typer.Argument(metavar="[LEVEL]", help="The level; without it, it is shown.")] = None,
    config: Config = DEFAULT_CONFIG,
    *,
    as_json: AsJson = False,
) -> None:
    """Show or set the compatibility level of a subject."""
    from hopwatch.gate.registry.compatibility import CompatibilityLevel

    _check_name(subject)
    if to is not None and to not in set(CompatibilityLevel):
        raise ConfigurationError(f"a level is one of {', '.join(CompatibilityLevel)}, got {to!r:.80}")
    registry = _open_registry(config, is_made=False)
    if to is not None:
        registry.set_level(CompatibilityLevel(to), subject)
    found = registry.level(subject)
    if as_json:
        console.emit_json({"subject": subject, "compatibility": found.value})
    else:
        console.stdout().print(f"{subject} is {found.value}")


@command.command()
def diff(  # noqa: PLR0913 - one parameter a flag
    subject: Subject,
    config: Config = DEFAULT_CONFIG,
    *,
    old: Annotated[int | None, typer.Option("--from", min=1, help="A version; the one before by default.")] = None,
    new: Annotated[int | None, typer.Option("--to", min=1, help="A version; the latest by default.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="A schema instead of --to.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how two versions of a subject differ.

    And who reads whom.
    """
    from hopwatch.gate.registry.compatibility import is_readable
    from hopwatch.gate.registry.differences import find_differences
    from hopwatch.gate.registry.subjects import UnknownError, parse_stored

    if file is not None and new is not None:
        raise ConfigurationError("--to and --file both say what is compared: name one of them")
    registry = _open_registry(config, is_made=False)
    try:
        latest = registry.entry(subject, new)
        before = latest.version - (file is None) if old is None else old
        if not before:
            raise ConfigurationError(f"there is nothing before version 1 of {subject}: name a schema with --file")
        entry = registry.entry(subject, before)
    except UnknownError as error:
        raise ConfigurationError(_format_unknown(error, subject)) from None
    first, second = (
        parse_stored(entry.schema.text),
        parse_stored(latest.schema.text) if file is None else read_schema(file),
    )
    name = f"version {latest.version}" if file is None else str(file)
    found = find_differences(first, second)
    is_backward, is_forward = is_readable(second, first), is_readable(first, second)
    if as_json:
        told = {"subject": subject, "from": entry.version, "to": latest.version if file is None else str(file)}
        told |= {"differences": [one._asdict() for one in found], "backward": is_backward, "forward": is_forward}
        console.emit_json(told)
        return
    table = Table(box=None)
    for head in ("place", f"version {entry.version}", name):
        table.add_column(head, overflow="fold")
    for one in found:
        table.add_row(one.place or "the schema itself", one.before or "-", one.now or "-")
    if found:
        console.stdout().print(table)
    words = console.stderr()
    words.print("" if found else f"version {entry.version} and {name} say the same")
    words.print(f"{name} {'reads' if is_backward else 'does not read'} what version {entry.version} wrote")
    words.print(f"version {entry.version} {'reads' if is_forward else 'does not read'} what {name} writes")


@command.command()
def generate(
    language: Annotated[Language, typer.Argument(help="What the module is written in.")],
    subject: Subject,
    config: Config = DEFAULT_CONFIG,
    *,
    version: Annotated[int | None, typer.Option("--version", min=1, help="The latest by default.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The file; stdout without it.")] = None,
) -> None:
    """Write a module for the events of a subject.

    Its classes encode them, and decode those of all versions that they can read.
    """
    from hopwatch.gate.registry.python_code import CodeGenerationError, generate_module
    from hopwatch.gate.registry.subjects import UnknownError, parse_stored

    del language  # there is one
    registry = _open_registry(config, is_made=False)
    try:
        entry = registry.entry(subject, version)
        versions = {one.version: parse_stored(one.schema.text) for one in registry.entries(subject)}
        text = generate_module(parse_stored(entry.schema.text), versions, subject, entry.version)
    except UnknownError as error:
        raise ConfigurationError(_format_unknown(error, subject)) from None
    except CodeGenerationError as error:
        raise ConfigurationError(str(error)) from None
    if out is None:
        console.emit_text(text)
        return
    _write_file(out, text)
    console.stderr().print(f"{out} has the events of {subject}, version {entry.version}")


def _write_file(out: Path, text: str) -> None:
    try:
        out.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigurationError(f"{out} cannot be written: {error.strerror}: name another file") from None


def _check_remotely(url: str, subject: str, new: Schema) -> RemoteVerdict:
    """Ask a registry for its verdict on a schema.

    Raises:
        ConfigurationError: the URL, or what lets one in, cannot be.
        TransportError: the registry gives no answer.
    """
    from hopwatch.gate.registry.remote_check import check_remotely
    from hopwatch.probes.schema_registry import RegistryDownError

    try:
        return check_remotely(open_remote_registry(url), subject, new)
    except ValueError as error:
        raise ConfigurationError(f"--registry: {error}") from None
    except RegistryDownError as error:
        raise TransportError(str(error)) from None


def _report_refusal(subject: str, error: Exception | str, *, as_json: bool) -> typer.Exit:
    """Report that a schema is refused for another reason than a field, which is a finding."""
    if as_json:
        console.emit_json({"subject": subject, "compatible": False, "conflicts": [], "reason": str(error)})
    else:
        console.stdout().print(str(error))
    return typer.Exit(FINDING_EXIT_CODE)


def _print_conflicts(subject: str, new: Schema, found: tuple[Conflict, ...], *, as_json: bool) -> None:
    from hopwatch.gate.registry.explanations import describe_new_major, explain_conflicts

    told = [one._asdict() for one in explain_conflicts(found)]
    if as_json:
        console.emit_json({"subject": subject, "compatible": not told, "conflicts": told})
        return
    data = console.stdout()
    for one in told:
        data.print(f"{one['place']}: {one['problem']}: {one['breaks']}")
        data.print(f"    {one['fix']}")
    console.stderr().print(f"or {describe_new_major(new.name)}")


def _format_unknown(error: UnknownError, subject: str) -> str:
    """Format the error of an unknown subject or version, with the command that lists them."""
    more = f" --subject {subject}" if error.what == "version" else ""
    return f"{error}: hopwatch schema list{more} names those that there are"


def _check_name(subject: str) -> None:
    from hopwatch.gate.registry.subjects import SUBJECT_PATTERN

    if not re.fullmatch(SUBJECT_PATTERN, subject):
        raise ConfigurationError(f"a subject is 1 to 255 of the characters A-Za-z0-9._-, got {subject!r:.80}")


def _open_registry(config: Path, *, is_made: bool) -> Registry:
    """Open the registry of the configured store; ``is_made`` creates a missing store."""
    from hopwatch.gate.registry.subjects import Registry

    return Registry(_open_store(config, is_made=is_made))


def _open_store(config: Path, *, is_made: bool) -> SchemaStore:
    from hopwatch.monitor.store.subjects import SubjectStore

    url = load_settings(config).store.url
    engine = dialect.create_engine(url)
    if is_made:
        store_schema.prepare_store(engine)
    else:
        store_schema.require_store(url)
    return SubjectStore(engine, SystemClock())
