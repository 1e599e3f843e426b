"""Tests of the OpenAPI document: no request that is made from it, valid or not, makes a fault."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from tests.api.asked_api import AskedApi
from tests.support.workspace import Workspace, one_of_ten_lost

CASES: Final = 2
"""Cases a route and mode, in every run."""
SOAK_CASES: Final = 50
"""The same in a part of a soak."""
SOAK_PARTS: Final = 10
SOAK_SENT: Final = 500
"""Requests of a part and mode at least: 10,000 in all. Of a route without parameters there are few."""
FEWER: Final = "/v1/changes"
"""Its answer has no end where nothing changes, so its length is not left to chance."""
CHECKS: Final = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
"""What an answer holds to."""
MODES: Final = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


@pytest.fixture
def api(tmp_path: Path) -> AskedApi:
    """Return the API over a store with one lossy window."""
    return AskedApi(Workspace(tmp_path).configure().watch(*one_of_ten_lost()))


def check_routes(api: AskedApi, mode: schemathesis.GenerationMode, cases: int, part: int = 0) -> int:
    """Send made-up requests to every route, others in each part; each answer is one of the document, in its form."""
    document = schemathesis.openapi.from_asgi("/openapi.json", api.app)
    routes = [one.ok() for one in document.get_all_operations() if isinstance(one, Ok)]
    sent = 0
    for route in (one for one in routes if one.path.startswith("/v1/") and one.path != FEWER):

        @seed(part)
        @settings(max_examples=cases, suppress_health_check=list(HealthCheck), database=None)
        @given(route.as_strategy(generation_mode=mode))
        def holds(case: schemathesis.Case[Any]) -> None:
            nonlocal sent
            # A case may ask to wait for a minute.
            case.query = {name: value for name, value in (case.query or {}).items() if name != "wait"}
            answer = case.call()
            sent += 1
            assert answer.status_code in {200, 304, 403, 404, 405, 422}, answer.text
            case.validate_response(answer, checks=CHECKS)

        # Of a route without parameters nothing can be wrong.
        with suppress(Unsatisfiable):
            holds()
    return sent


@pytest.mark.parametrize("mode", MODES)
def test_no_request_of_the_document_makes_a_fault(api: AskedApi, mode: schemathesis.GenerationMode) -> None:
    """Some of each route."""
    assert check_routes(api, mode, CASES) >= CASES


@pytest.mark.soak
@pytest.mark.parametrize("part", range(SOAK_PARTS))
@pytest.mark.parametrize("mode", MODES)
def test_no_request_of_many_makes_a_fault(api: AskedApi, mode: schemathesis.GenerationMode, part: int) -> None:
    """Ten thousand in all parts and both modes."""
    assert check_routes(api, mode, SOAK_CASES, part) >= SOAK_SENT
