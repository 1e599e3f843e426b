"""Tests of URLs of traces."""

from __future__ import annotations

import pytest

from hopwatch.monitor.texts.trace_url import build_trace_url

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TEMPLATE = "https://jaeger.example/trace/{trace_id}?uiEmbed=v0"


def test_an_id_of_a_traced_service_leads_to_its_trace() -> None:
    """The id of the trace takes the place of the field."""
    assert (
        build_trace_url(TEMPLATE, f"{TRACE}-00f067aa0ba902b7-1a") == f"https://jaeger.example/trace/{TRACE}?uiEmbed=v0"
    )


@pytest.mark.parametrize(
    "message_id", ["", "order 7", TRACE, f"{TRACE}-00f067aa0ba902b7", f"{TRACE}-00f067aa0ba902b7-x"]
)
def test_other_ids_have_no_trace(message_id: str) -> None:
    """Such as those that a service gives itself."""
    assert build_trace_url(TEMPLATE, message_id) is None


def test_without_a_template_there_is_no_url() -> None:
    """The configuration names no tracing system by default."""
    assert build_trace_url("", f"{TRACE}-00f067aa0ba902b7-1a") is None
