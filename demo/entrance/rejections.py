"""The sender's account of broken events: how many of each kind, how many the gate rejected; read at the end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from hopwatch.demo.comparison_line import ComparisonLine, expect_equal
from hopwatch.demo.entrance.answers import GateAnswer
from hopwatch.demo.entrance.breakage import Breakage
from hopwatch.demo.stream import GATE

NOTHING: Final = "nothing wrong"
"""Name of the kind of events that were not broken."""


@dataclass(slots=True)
class Rejection:
    """One kind of broken event: how many were sent, how many the gate rejected for it, and its first reason."""

    what: str
    injected: int = 0
    rejected: int = 0
    reason: str = ""


class Rejections:
    """The sender's account."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kinds: dict[str, Rejection] = {}

    def note(self, breakage: Breakage | None, answer: GateAnswer) -> None:
        """Note how an event was broken and what the gate answered.

        A broken event counts as rejected if the gate names the place that was broken.
        """
        is_rejected = answer.status == HTTPStatus.UNPROCESSABLE_ENTITY
        if breakage is None and not is_rejected:
            return
        what = NOTHING if breakage is None else breakage.name
        kind = self._kinds.setdefault(what, Rejection(what))
        kind.injected += breakage is not None
        if is_rejected and (breakage is None or answer.place == breakage.place):
            kind.rejected += 1
            kind.reason = kind.reason or f"{answer.place} {answer.detail}"

    def write(self, path: Path) -> None:
        """Write the account down."""
        path.write_text(json.dumps([asdict(kind) for kind in self._kinds.values()]), encoding="utf-8")


def read_rejections(path: Path) -> list[Rejection]:
    """Return the account that was written; empty where there is no file."""
    told = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return sorted((Rejection(**one) for one in told), key=lambda kind: kind.what)


def compare_rejections(kinds: Iterable[Rejection]) -> list[ComparisonLine]:
    """Compare how many events were broken with how many the gate rejected, by kind."""
    return [expect_equal(f"rejected, {kind.what}", GATE, kind.injected, kind.rejected) for kind in kinds]


def describe_rejections(kinds: Sequence[Rejection]) -> list[str]:
    """Return the gate's reasons, one line each."""
    said = [f"  {kind.what}, {kind.rejected:,} times, such as: {kind.reason}" for kind in kinds if kind.rejected]
    return ["what the gate said of events that it rejected:", *said] if said else []
