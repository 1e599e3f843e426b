"""Question of a sensor, in whatever orchestrator: whether a span of a stream is complete, asked of the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

from hopwatch.client.errors import ResultsError
from hopwatch.client.results import SpanCompleteness
from hopwatch.client.results_client import ResultsClient

COMPLETE: Final = "complete"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"
"""State while the API does not answer, or the moment lies ahead."""
_TRANSIENT: Final = frozenset({0, 408, 425, 429})
"""Statuses of an API that may answer later; 0 is no answer. So may all from 500 on."""


class ContractState(NamedTuple):
    """State of a contract for a span: complete, pending, failed or unknown, and why, in one line."""

    state: str
    text: str


def ask_contract(client: ResultsClient, contract: str, until: str) -> ContractState:
    """Ask the API of a contract for the span that ends at a moment, ISO 8601.

    Raises:
        ResultsError: the API refuses: asking again changes nothing.
        ValueError: it is no moment.
    """
    if _is_ahead(until, datetime.now(UTC)):
        return ContractState(UNKNOWN, f"{contract}: {until} is in the future")
    try:
        answer = client.completeness(contract, until)
    except ResultsError as error:
        if _is_transient(error):
            return ContractState(UNKNOWN, f"{contract}: the API does not answer: {error}")
        raise
    return ContractState(answer.state, _summarize_answer(answer))


def _summarize_answer(answer: SpanCompleteness) -> str:
    """Return an answer in one line: the contract, the span's end, and the first thing that stands in the way."""
    told = f"{answer.contract}: {answer.stream} until {answer.until} is {answer.state}"
    texts = [one.text for part in (answer.blocked, answer.probes, answer.holes) for one in part]
    more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
    return f"{told}: {texts[0]}{more}" if texts else told


def _is_transient(error: ResultsError) -> bool:
    """Return whether the API may answer when it is asked again: it is down or busy, and has not refused."""
    return error.status in _TRANSIENT or error.status >= 500  # noqa: PLR2004 - errors of the server


def _is_ahead(until: str, now: datetime) -> bool:
    """Return whether a moment, UTC without a zone, lies behind ``now``: so long the API refuses it."""
    moment = datetime.fromisoformat(until)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) > now
