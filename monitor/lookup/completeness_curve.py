"""Timeliness against accuracy of a stream, asked of the store: for ``hopwatch completeness curve`` and the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from hopwatch.monitor.kernel.completeness_curve import (
    WAITS_US,
    PolicyProposal,
    StreamCurve,
    WaitCurve,
    build_curve,
    propose_policy,
)
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.settings.durations import format_duration_us
from hopwatch.monitor.store.completeness_curve import read_amendments, read_arrivals

RISK: Final = 0.001
"""Share of the windows whose messages may take longer than the proposed transit."""


class CurveAnswer(NamedTuple):
    """WaitCurve of a stream over its windows that start in ``[from_us, to_us)``; no proposal without any window."""

    stream: str
    from_us: int
    to_us: int
    terms: WindowPolicy
    curve: StreamCurve
    proposal: PolicyProposal | None


def read_curve(  # noqa: PLR0913, PLR0917 - a stream, a range, and what is asked of them
    connection: Connection,
    stream: str,
    terms: WindowPolicy,
    from_us: int,
    to_us: int,
    waits_us: Sequence[int] = WAITS_US,
    risk: float = RISK,
) -> CurveAnswer:
    """Return what windows of a stream would have lacked after each wait, and what is proposed for its terms.

    Raises:
        StoreError: the store cannot be read.
    """
    curve = build_curve(read_arrivals(connection, stream, from_us, to_us, min(waits_us)), waits_us)
    amended_us = list(read_amendments(connection, stream, from_us, to_us, terms))
    proposal = propose_policy(curve.passing_us, amended_us, terms.settle_us, risk) if curve.passing_us else None
    return CurveAnswer(stream, from_us, to_us, terms, curve, proposal)


def curve_to_json(answer: CurveAnswer) -> dict[str, Any]:
    """Return an answer as ``hopwatch completeness curve --json`` shows it."""
    return {
        "stream": answer.stream,
        "from": format_iso(answer.from_us),
        "to": format_iso(answer.to_us),
        "transit_us": answer.terms.transit_us,
        "settle_us": answer.terms.settle_us,
        **_to_json(answer.curve.whole),
        "nodes": {node: _to_json(curve) for node, curve in answer.curve.nodes.items()},
        "proposal": None if answer.proposal is None else answer.proposal._asdict(),
    }


def format_proposal(stream: str, proposal: PolicyProposal) -> list[str]:
    """Return a proposal as TOML to paste, below comments with its risk."""
    slow = f"in {proposal.slow_windows:,} of {proposal.windows:,} windows messages took longer than this transit,"
    return [
        f"# {slow}",
        f"# and {proposal.amended_windows:,} would have been amended",
        f"[streams.{stream}]",
        f'transit = "{format_duration_us(proposal.transit_us)}"',
        f'settle = "{format_duration_us(proposal.settle_us)}"',
    ]


def _to_json(curve: WaitCurve) -> dict[str, Any]:
    points = [point._asdict() for point in curve.points]
    return {"windows": curve.windows, "arrivals": curve.arrivals, "latest_us": curve.latest_us, "points": points}
