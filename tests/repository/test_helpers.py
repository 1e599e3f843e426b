"""Tests of the helpers of tests: where they are, and that test modules are no libraries."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.repository import ROOT


def imports(folder: str) -> Iterator[tuple[Path, str]]:
    """Yield the modules that the files of a folder import from, and what they import by name."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path.relative_to(ROOT), one.name) for one in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((path.relative_to(ROOT), f"{node.module}.{one.name}") for one in node.names)


def test_no_test_module_is_imported() -> None:
    """No test imports another test module."""
    found = [(str(path), name) for path, name in imports("tests") if name.startswith("tests.")]
    assert len(found) > 100
    assert [one for one in found if any(part.startswith("test_") for part in one[1].split(".")[:-1])] == []


def test_benches_and_servers_import_no_tests() -> None:
    """Neither a bench nor a server imports tests."""
    found = [(str(path), name) for folder in ("bench", "servers") for path, name in imports(folder)]
    assert any(name.startswith("servers.") for _, name in found)
    assert [one for one in found if one[1].partition(".")[0] == "tests"] == []
