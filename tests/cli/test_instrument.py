"""Tests of ``hopwatch instrument``: what it adds to a service's environment, and what it says where something lacks."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from hopwatch.cli.instrument import LAUNCHER, build_environment, describe_missing
from hopwatch.cli.main import main
from hopwatch.monitor.errors import ConfigurationError

SINK = "spool:/tmp/spool"
ADVICE = "install it where the service is, by 'pip install"


def test_an_untraced_service_gets_all_that_is_needed() -> None:
    """Its traces go nowhere, as no collector was named."""
    assert build_environment({"HOME": "/root"}, "shop", SINK) == {
        "HOME": "/root",
        "OTEL_SERVICE_NAME": "shop",
        "HOPWATCH_SINK": SINK,
        "OTEL_PROPAGATORS": "tracecontext,baggage,hopwatch",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [("", "tracecontext,baggage,hopwatch"), ("b3", "b3,hopwatch"), ("hopwatch,b3", "hopwatch,b3")],
)
def test_propagators_that_are_set_stay(before: str, after: str) -> None:
    """Ours is added where it is not among them."""
    assert build_environment({"OTEL_PROPAGATORS": before}, "shop", SINK)["OTEL_PROPAGATORS"] == after


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_traces_go_where_a_service_sends_them(name: str) -> None:
    """A collector that was named gets what it got before."""
    assert "OTEL_TRACES_EXPORTER" not in build_environment({name: "http://collector:4318"}, "shop", SINK)


def test_an_exporter_that_is_set_stays() -> None:
    """Only what is not said is none."""
    built = build_environment({"OTEL_TRACES_EXPORTER": "console"}, "shop", SINK)
    assert [built[name] for name in ("OTEL_TRACES_EXPORTER", "OTEL_LOGS_EXPORTER")] == ["console", "none"]


def test_variables_name_service_and_sink_where_flags_do_not() -> None:
    """Flags go first."""
    variables = {"OTEL_SERVICE_NAME": "router", "HOPWATCH_SINK": "kafka://broker:9092"}
    built = build_environment(variables, None, None)
    assert (built["OTEL_SERVICE_NAME"], built["HOPWATCH_SINK"]) == ("router", "kafka://broker:9092")
    assert build_environment(variables, "shop", SINK)["OTEL_SERVICE_NAME"] == "shop"


@pytest.mark.parametrize("name", [None, "", "a shop", "x" * 129])
def test_a_service_needs_a_name(name: str | None) -> None:
    """A node is called so."""
    with pytest.raises(ConfigurationError, match=r"a service has a name of 1 to 128 .*: say it by --service"):
        build_environment({}, name, SINK)


@pytest.mark.parametrize("url", [None, "", "spool:", "ftp://x", "kafka://broker"])
def test_stamps_need_a_sink(url: str | None) -> None:
    """The form of both kinds is said."""
    with pytest.raises(ConfigurationError, match=r"(a sink is|a Kafka URL is) .*: say it by --sink"):
        build_environment({}, "shop", url)


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ({"aiokafka", "opentelemetry-instrumentation-aiokafka"}, []),
        (
            {"aiokafka", "kafka-python", "opentelemetry-instrumentation-aiokafka"},
            [f"messages of kafka-python will not be stamped: {ADVICE} opentelemetry-instrumentation-kafka-python'"],
        ),
        (set(), ["no message will be stamped: none of confluent-kafka, aiokafka, kafka-python is installed here"]),
    ],
)
def test_clients_that_are_not_instrumented_are_named(installed: set[str], expected: list[str]) -> None:
    """With the command that helps."""
    assert describe_missing(installed) == expected


def test_the_service_takes_the_place_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that signals and the exit code are its own; flags behind -- are its own, too."""
    called: list[Any] = []
    monkeypatch.setattr(os, "execve", lambda *told: called.append(told))
    assert main(["instrument", "--service", "shop", "--sink", SINK, "--", "python", "shop.py", "--sink", "x"]) == 0
    ((path, arguments, environment),) = called
    assert Path(path).name == LAUNCHER
    assert arguments == [path, "python", "shop.py", "--sink", "x"]
    assert environment["HOPWATCH_SINK"] == SINK


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (LAUNCHER, f"{LAUNCHER} is not there: {ADVICE} opentelemetry-distro'"),
        ("shop", "'shop' cannot be started: there is no such program"),
    ],
)
def test_what_is_not_there_is_said(
    missing: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Before anything runs."""
    which = shutil.which
    if missing == LAUNCHER:
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else which(name))
    assert main(["instrument", "--service", "shop", "--sink", SINK, "--", "shop"]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
