"""Tests of the environment: it enters each program in one module, and everything else gets values."""

from __future__ import annotations

import ast
from typing import Final

from tests.repository import ROOT
from tests.repository.source_modules import MODULES

READERS: Final = {
    "cli/configuration.py": "the commands: settings and the variables of a terminal",
    "alerts/channels/command.py": "a command of the user's is run with the variables of the monitor",
    "probes/environment.py": "services that embed a probe, and taps",
    "dashboards/app.py": "Streamlit runs it in a process of its own",
    "demo/links/run_links.py": "the demo creates topics before its nodes use them, with the access of the monitor",
    "demo/links/topics.py": "a demo's node is a process of its own, with the access that probes have",
    "monitor/java.py": "JAVA_HOME is whatever Spark's own scripts find there",
    "monitor/spark/session.py": "Spark takes its Python and its workers' variables from its process alone",
}
"""The only modules that name the environment of the process, each with its reason."""
GATES: Final = frozenset({"environ", "environb", "getenv", "getenvb", "putenv"})


def _names_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in GATES and isinstance(node.value, ast.Name) and node.value.id == "os"
    return isinstance(node, ast.ImportFrom) and node.module == "os" and any(one.name in GATES for one in node.names)


def readers() -> set[str]:
    """Return the modules of the product that name the environment in code; measures are programs of their own."""
    found = set()
    for path in MODULES:
        place, text = path.relative_to(ROOT), path.read_text("utf-8")
        # To parse all modules would take most of the time.
        if place.parts[0] == "bench" or not any(name in text for name in GATES):
            continue
        if any(_names_environment(node) for node in ast.walk(ast.parse(text))):
            found.add(place.as_posix())
    return found


def test_the_environment_enters_in_few_places() -> None:
    """A module that is not in the list gets a mapping or a value; one that no longer reads it leaves the list."""
    assert readers() == set(READERS)
