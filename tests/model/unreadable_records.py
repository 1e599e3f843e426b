"""Records that could not be read, and the instances that they may be of: SEMANTICS.md, "What is set aside"."""

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b

from tests.model.books import Instance, Interval, Unheard
from tests.model.intake import AHEAD_US, Intake, Stream

_NAMED = re.compile(r"(.+)\.(\d{1,18})(-[0-9a-f]{12})?", re.DOTALL)
_CUT = re.compile(r"(.{120})-[0-9a-f]{12}", re.DOTALL)


def folder_of(stream: str, node: str, probe: str, epoch_us: int) -> str:
    """Give the name of an instance's folder."""
    name = f"{stream}.{node}.{probe}.{epoch_us}"
    safe = re.sub(r"^[._]|[^A-Za-z0-9._-]", "-", name)[:120]
    return safe if safe == name else f"{safe}-{blake2b(name.encode(), digest_size=6).hexdigest()}"


def named(folder: str, stream: str, nodes: Iterable[str]) -> list[tuple[str, int | None]]:
    """Give each (node, epoch) of a stream that a folder may be of; a node that nobody declared counts, too."""
    if cut := _CUT.fullmatch(folder):
        begin = cut[1]
        whole = [f"{stream}.{node}." for node in nodes]
        return [
            (node, None)
            for node, name in zip(nodes, whole, strict=True)
            if begin.startswith(name) or name.startswith(begin)
        ]
    if not (told := _NAMED.fullmatch(folder)) or not told[1].startswith(f"{stream}."):
        return []
    rest = told[1].removeprefix(f"{stream}.")
    declared: list[tuple[str, int | None]] = [
        (node, int(told[2])) for node in nodes if rest.startswith(f"{node}.") and len(rest) > len(node) + 1
    ]
    undeclared: list[tuple[str, int | None]] = (
        [(rest.partition(".")[0], int(told[2]))] if rest.partition(".")[2] else []
    )
    return declared or undeclared


def unheard(name: str, stream: Stream, intake: Intake, heard: Mapping[str, Instance]) -> list[Unheard]:
    """Give the instances of a stream that are known by their folders alone; `heard` are those that sent, by folder.

    Of those that sent, what could not be read is noted.
    """
    moments: dict[str, list[int]] = {}
    for folder, changed_us in intake.folders:
        moments.setdefault(folder, []).append(changed_us)
    for one in intake.unread:
        if one.folder in heard:
            heard[one.folder].unread_us = max(heard[one.folder].unread_us, one.arrival_us)
        moments.setdefault(one.folder, []).append(one.arrival_us)
    return [
        Unheard(node, min(come) if epoch_us is None else epoch_us, min(come), max(come))
        for folder, come in moments.items()
        if folder not in heard and folder not in intake.others
        for node, epoch_us in named(folder, name, stream.pathway.declared)
    ]


def is_touched(intake: Intake, streams: Mapping[str, Stream], judged: Interval, settle_us: int) -> bool:
    """Say whether a record that may have been anybody's came while those of a window come."""
    start_us, horizon_us = judged
    return any(
        start_us - AHEAD_US <= one.arrival_us <= horizon_us + settle_us
        for one in intake.unread
        if _is_anybodys(one.folder, one.reason, streams)
    )


def _is_anybodys(folder: str, reason: str, streams: Mapping[str, Stream]) -> bool:
    if any(named(folder, name, stream.pathway.declared) for name, stream in streams.items()):
        return False
    told = _NAMED.fullmatch(folder)
    is_named = bool(told and len(told[2]) >= 10) or bool(_CUT.fullmatch(folder))
    return reason != "foreign_file" and not is_named
