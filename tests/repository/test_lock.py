"""Tests of the lock file: complete, pinned, hashed, and the same on every machine."""

from __future__ import annotations

import re
import tomllib
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repository import ROOT

LOCK: Final = (ROOT / "requirements" / "dev.txt").read_text()
ENTRIES: Final = [entry.replace("\\\n", " ") for entry in re.findall(r"^[^#\s](?:.*\\\n)*.*$", LOCK, re.MULTILINE)]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED: Final = [
    *PROJECT["dependencies"],
    *(one for extra in PROJECT["optional-dependencies"].values() for one in extra),
]


def test_every_package_is_pinned_and_hashed() -> None:
    """An entry is a name, one version and at least one SHA-256, and nothing else."""
    assert len(ENTRIES) > len(DECLARED)
    entry_form = re.compile(r"[a-z0-9.-]+==\S+(?:\s+--hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in ENTRIES if not entry_form.fullmatch(entry)] == []


@pytest.mark.parametrize(
    "mark", ["://", "--index-url", "--extra-index-url", "--find-links", "--trusted-host", " @ ", ":/"]
)
def test_the_lock_names_no_host_and_no_path(mark: str) -> None:
    """Where packages come from is the business of each machine's pip."""
    assert mark not in LOCK


def test_the_lock_says_how_it_is_renewed() -> None:
    """The command in its head is the one that the Makefile has."""
    assert re.search(r"^#    make lock$", LOCK, re.MULTILINE)
    assert re.search(r"^lock:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("declared", DECLARED)
def test_every_dependency_is_locked_at_a_version_that_is_allowed(declared: str) -> None:
    """A change of pyproject.toml without ``make lock`` is noticed."""
    requirement = Requirement(declared)
    pins = dict(entry.split()[0].split("==") for entry in ENTRIES)
    assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)], prereleases=True)
