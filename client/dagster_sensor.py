"""Dagster: a sensor that requests a run for each span of a stream that has become complete."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dagster import EnvVar, RunRequest, SensorDefinition, SensorEvaluationContext, SkipReason, sensor

from hopwatch.client.results_client import ResultsClient
from hopwatch.client.sensors import COMPLETE, ask_contract

MAX_RUNS: Final = 24
"""Runs that one evaluation requests at most: after an outage there may be many spans."""
POLL_S: Final = 30


def build_completeness_sensor(  # noqa: PLR0913 - what it is made of
    *,
    contract: str,
    first_until: datetime,
    every: timedelta,
    url: str,
    token: str | EnvVar = "",
    name: str | None = None,
    minimum_interval_seconds: int = POLL_S,
    **more: Any,  # noqa: ANN401 - of Dagster's own: job, asset_selection, …
) -> SensorDefinition:
    """Build a sensor that requests a run for each span of a contract, one after the other, once it is complete.

    The first span ends at ``first_until``, the next ones ``every`` behind it: as long as the contract's ``over``. A
    span that is lossy holds up those behind it, and the reason for the skip says why. Runs have a key of their own and
    the tag ``hopwatch/until``; a run is requested once. ``token`` is that of a reader of ``hopwatch api``.

    Raises:
        ValueError: ``first_until`` has no zone, or ``every`` is not positive.
    """
    if first_until.tzinfo is None:
        raise ValueError(f"first_until has a zone, such as UTC, got {first_until.isoformat()}")
    if every <= timedelta(0):
        raise ValueError(f"every is the length of a span, and positive, got {every}")

    def evaluate(context: SensorEvaluationContext) -> Iterator[RunRequest | SkipReason]:
        secret = token.get_value() or "" if isinstance(token, EnvVar) else token
        client = ResultsClient(url, token=secret)
        until = datetime.fromisoformat(context.cursor) + every if context.cursor else first_until
        for number in range(MAX_RUNS):
            state, text = ask_contract(client, contract, until.isoformat())
            if state != COMPLETE:
                # An evaluation has a reason to skip or runs, never both.
                if not number:
                    yield SkipReason(text)
                return
            moment = until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            yield RunRequest(run_key=f"{contract}/{moment}", tags={"hopwatch/until": moment})
            context.update_cursor(until.isoformat())
            until += every

    build = sensor(name=name or f"{contract}_complete", minimum_interval_seconds=minimum_interval_seconds, **more)
    return build(evaluate)
