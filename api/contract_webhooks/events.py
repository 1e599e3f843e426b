"""Events that the webhook of a contract gets, in our own form and in that of OpenLineage. Pure."""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from hopwatch import __version__
from hopwatch.monitor.kernel.completeness import CompletenessState
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store.told_spans import ToldSpan

VERSION: Final = 1
"""Version of our own form; a field may be added under the same number, none is renamed or removed."""
PRODUCER: Final = f"urn:hopwatch:{__version__}"
_COUNTS: Final = ToldSpan._fields[2:]
"""Counts of an answer that are kept, named as in the answer."""
_SPEC: Final = "https://openlineage.io/spec"
RUN_EVENT: Final = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS: Final = {
    "nominalTime": f"{_SPEC}/facets/1-0-1/NominalTimeRunFacet.json#/$defs/NominalTimeRunFacet",
    "dataQualityMetrics": f"{_SPEC}/facets/1-0-3/DataQualityMetricsInputDatasetFacet.json#/$defs/"
    "DataQualityMetricsInputDatasetFacet",
    "dataQualityAssertions": f"{_SPEC}/facets/1-1-0/DataQualityAssertionsDatasetFacet.json#/$defs/"
    "DataQualityAssertionsDatasetFacet",
}


def summarize_answer(until_us: int, answer: dict[str, Any]) -> ToldSpan:
    """Return what is kept of an answer that was told."""
    return ToldSpan(until_us, answer["state"], *(answer[name] for name in _COUNTS))


def must_be_told(before: ToldSpan, now: ToldSpan) -> bool:
    """Return whether a webhook has to be told: a first decision, or anything else than it was told before."""
    if before.state == CompletenessState.PENDING:
        return now.state != CompletenessState.PENDING
    return now != before


def build_event(answer: dict[str, Any], before: ToldSpan, installation: str) -> bytes:
    """Return an event in our own form: the answer as the API has it, and what was told before if that is not so."""
    told = before._asdict() | {"until": format_iso(before.until_us)}
    del told["until_us"]
    event = {
        "version": VERSION,
        "installation": installation,
        "event": answer["state"] if before.state == CompletenessState.PENDING else "amended",
        "answer": answer,
        "before": None if before.state == CompletenessState.PENDING else told,
    }
    return json.dumps(event, ensure_ascii=False).encode()


def build_lineage_event(answer: dict[str, Any], installation: str, now_us: int) -> bytes:
    """Return a run event of OpenLineage: COMPLETE for a span that is complete, else FAIL.

    Its input is the stream, with the messages as rows and the contract as assertions. Each answer is a run of its own:
    the one for an amended span is another one than that before, and the same where it is sent twice.
    """
    namespace, is_complete = installation or "hopwatch", answer["state"] == CompletenessState.COMPLETE
    obstacles = {one["obstacle"] for one in answer["blocked"]}
    assertions = [
        {"assertion": "complete", "success": is_complete},
        {"assertion": "lost_below", "success": "lost" not in obstacles},
    ]
    event = {
        "eventType": "COMPLETE" if is_complete else "FAIL",
        "eventTime": format_iso(now_us),
        "producer": PRODUCER,
        "schemaURL": RUN_EVENT,
        "run": {
            "runId": str(uuid5(NAMESPACE_URL, build_key(answer, installation))),
            "facets": {
                "nominalTime": _build_facet(
                    "nominalTime", nominalStartTime=answer["from"], nominalEndTime=answer["until"]
                )
            },
        },
        "job": {"namespace": namespace, "name": f"completeness.{answer['contract']}"},
        "inputs": [
            {
                "namespace": namespace,
                "name": answer["stream"],
                "inputFacets": {
                    "dataQualityAssertions": _build_facet("dataQualityAssertions", assertions=assertions),
                    "dataQualityMetrics": _build_facet(
                        "dataQualityMetrics", rowCount=answer["known"], columnMetrics={}
                    ),
                },
            }
        ],
        "outputs": [],
    }
    return json.dumps(event, ensure_ascii=False).encode()


def build_key(answer: dict[str, Any], installation: str) -> str:
    """Return the idempotency key of an event: the same at each try of an answer, another one for another answer."""
    place = f"{installation}/{answer['contract']}/{answer['until']}"
    return f"{place}#{answer['state']}-{'-'.join(str(answer[name]) for name in _COUNTS)}"


def _build_facet(name: str, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - of any facet
    return {"_producer": PRODUCER, "_schemaURL": _FACETS[name], **values}
