"""Verification of an evidence file: line by line against its chain, then its end against its signature."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.evidence.chain import FORMAT, HashChain, split_line
from hopwatch.monitor.evidence.signature import decode_signature, verify_signature

Json = dict[str, Any]

MAX_LINE_BYTES: Final = 256 * 1024 * 1024
"""Bytes of the longest line that is read: a window of thousands of nodes has some million."""
MAX_FINDINGS: Final = 100


@dataclass(slots=True)
class Verification:
    """Outcome of a verification; the file is sound if nothing was found."""

    findings: list[str] = field(default_factory=list)
    header: Json | None = None
    end: Json | None = None
    head: str = ""
    """Hash of the last line of the chain."""
    lines: int = 0

    @property
    def is_sound(self) -> bool:
        """Return whether each line is what was signed."""
        return not self.findings

    def add_finding(self, text: str) -> None:
        """Add a finding; beyond some of them only that there are more."""
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(text)
        elif len(self.findings) == MAX_FINDINGS:
            self.findings.append(f"more than {MAX_FINDINGS} findings: the others are not listed")


def verify_file(file: Path, key: Ed25519PublicKey) -> Verification:
    """Verify an evidence file.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    return _verify(file, key)


def read_head(file: Path) -> str | None:
    """Read the last hash of a file that is whole; None of any other. Whose signature it has is not asked.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    found = _verify(file, None)
    return found.head if found.is_sound else None


def verify_succession(found: Verification, before: Verification) -> None:
    """Verify that a file follows another one: it names its last hash, and begins where that ends."""
    for one in before.findings:
        found.add_finding(f"the file before: {one}")
    if found.header is None or before.header is None:
        return
    if found.header["previous"] != before.head:
        found.add_finding("it does not follow the file before: its header names another hash as the previous one")
    elif found.header["from"] != before.header["to"]:
        ends, begins = before.header["to"], found.header["from"]
        found.add_finding(f"the file before ends at {ends}, this one begins at {begins}")


def _verify(file: Path, key: Ed25519PublicKey | None) -> Verification:
    found = Verification()
    try:
        with file.open("rb") as lines:
            _verify_lines(_read_lines(lines), found, key)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror or error}") from None
    return found


def _read_lines(lines: IO[bytes]) -> Iterator[bytes]:
    while line := lines.readline(MAX_LINE_BYTES):
        yield line


def _verify_lines(lines: Iterator[bytes], found: Verification, key: Ed25519PublicKey | None) -> None:
    chain, counts, signature = HashChain(), _Counts(), None
    for number, line in enumerate(lines, 1):
        if found.end is not None:
            if signature is not None:
                found.add_finding(f"line {number}: something stands behind the signature")
                break
            signature = _parse_signature(line)
            if signature is None:
                found.add_finding(f"line {number}: the signature cannot be read")
                return
            continue
        _verify_line(number, line, chain, found, counts)
        if number == 1 and found.header is None:
            return
    found.head = chain.head
    if found.end is None:
        found.add_finding(f"it ends after line {found.lines} without its last line: it was cut off")
        return
    counts.compare(found.end, found)
    if signature is None:
        found.add_finding("it has no signature: it was cut off")
    elif key is not None and not verify_signature(key, found.head, signature):
        found.add_finding(
            "the signature is not by this key over this file: another key signed, or lines were exchanged"
        )


def _verify_line(number: int, line: bytes, chain: HashChain, found: Verification, counts: _Counts) -> None:
    parts = split_line(line)
    if parts is None:
        what = "it is no evidence file of Hopwatch" if number == 1 else "it is no hash with its JSON"
        found.add_finding(f"line {number}: {what}")
        return
    found.lines = number
    value = _parse_body(parts.body)
    is_whole = chain.add_body(parts.body) == parts.said
    # What is wrong in one line is said of this line alone.
    chain.head = parts.said
    if not is_whole:
        found.add_finding(f"line {number}: {_describe(value)} was changed, or lines before it")
    elif value is None:
        found.add_finding(f"line {number}: its JSON cannot be read")
    if number == 1:
        _take_header(value, found)
    elif value is not None:
        counts.add(value)
        if value.get("kind") == "end":
            found.end = value


def _take_header(value: Json | None, found: Verification) -> None:
    if value is None or value.get("kind") != "header" or value.get("format") != FORMAT:
        said = None if value is None else value.get("format")
        found.add_finding(f"line 1: it is no header of {FORMAT}, the format is {said!r:.60}")
        return
    found.header = {"from": None, "to": None, "previous": None, "streams": [], **value}


def _describe(value: Json | None) -> str:
    if value is None:
        return "its JSON"
    match value.get("kind"):
        case "window":
            return f"the window {value.get('window_start')} of {value.get('stream')}"
        case "lost_ids":
            place = f"{value.get('node')} in the window {value.get('window_start')} of {value.get('stream')}"
            return f"the lost ids at {place}"
        case kind:
            return f"the line of kind {kind!r:.40}"


def _parse_body(body: bytes) -> Json | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _parse_signature(line: bytes) -> bytes | None:
    value = _parse_body(line)
    text = None if value is None else value.get("signature")
    return decode_signature(text) if isinstance(text, str) else None


class _Counts:
    """Windows and lost ids by stream, to hold against the end of the file."""

    def __init__(self) -> None:
        self._windows, self._ids = Counter[str](), Counter[str]()

    def add(self, value: Json) -> None:
        stream, ids = str(value.get("stream")), value.get("ids")
        self._windows[stream] += value.get("kind") == "window"
        self._ids[stream] += len(ids) if isinstance(ids, list) else 0

    def compare(self, end: Json, found: Verification) -> None:
        streams = end.get("streams")
        for one in streams if isinstance(streams, list) else ():
            name = str(one.get("stream")) if isinstance(one, dict) else "?"
            for what, said, counted in (
                ("windows", "windows", self._windows[name]),
                ("lost ids", "lost_ids", self._ids[name]),
            ):
                if not isinstance(one, dict) or one.get(said) != counted:
                    found.add_finding(f"it has {counted:,} {what} of {name}, its last line says otherwise")
