"""Tests of the lock files: complete, pinned, hashed, and the same on every machine."""

from __future__ import annotations

import re
import tomllib
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repository import ROOT

LOCKS: Final = {path.stem: path.read_text("utf-8") for path in (ROOT / "requirements").glob("*.txt")}
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: Final = PROJECT["project"]["optional-dependencies"]
OF_PRODUCTION: Final = [
    *PROJECT["project"]["dependencies"],
    *(one for name, extra in EXTRAS.items() if name != "dev" for one in extra),
]
DECLARED: Final = {
    "dev": [*OF_PRODUCTION, *EXTRAS["dev"]],
    "production": OF_PRODUCTION,
    "build": PROJECT["build-system"]["requires"],
}
"""What each lock is made of."""
ASKED_FOR: Final = {"joserfc", "pyyaml", "websockets"}
"""What tests name that Authlib, Apprise and Streamlit ask for, too."""


def entries(lock: str) -> list[str]:
    """Return the entries of a lock, each on one line."""
    return [entry.replace("\\\n", " ") for entry in re.findall(r"^[^#\s](?:.*\\\n)*.*$", LOCKS[lock], re.MULTILINE)]


def pins(lock: str) -> dict[str, str]:
    """Return the version of each package of a lock."""
    return dict(entry.split()[0].split("==") for entry in entries(lock))


def of_development_alone() -> set[str]:
    """Return the packages that the extra of development names and nothing else does."""
    named = {str(canonicalize_name(Requirement(one).name)) for one in OF_PRODUCTION}
    return {str(canonicalize_name(Requirement(one).name)) for one in EXTRAS["dev"]} - named


def test_the_locks_are_those_that_are_known() -> None:
    """One for development, one for the image, one for its wheel."""
    assert LOCKS.keys() == DECLARED.keys()


@pytest.mark.parametrize("lock", DECLARED)
def test_every_package_is_pinned_and_hashed(lock: str) -> None:
    """An entry is a name, one version and at least one SHA-256, and nothing else."""
    assert len(entries(lock)) >= len(DECLARED[lock])
    entry_form = re.compile(r"[a-z0-9.-]+==\S+(?:\s+--hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in entries(lock) if not entry_form.fullmatch(entry)] == []


@pytest.mark.parametrize("lock", DECLARED)
@pytest.mark.parametrize(
    "mark", ["://", "--index-url", "--extra-index-url", "--find-links", "--trusted-host", " @ ", ":/"]
)
def test_the_lock_names_no_host_and_no_path(lock: str, mark: str) -> None:
    """A lock names no host and no path of the machine that made it."""
    assert mark not in LOCKS[lock]


@pytest.mark.parametrize("lock", DECLARED)
def test_the_lock_says_how_it_is_renewed(lock: str) -> None:
    """The command in its head is the one that the Makefile has."""
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^#    make lock$", LOCKS[lock], re.MULTILINE)
    assert re.search(r"^lock:", makefile, re.MULTILINE)
    assert f":= requirements/{lock}.txt\n" in makefile


@pytest.mark.parametrize(("lock", "declared"), [(lock, one) for lock, all_of in DECLARED.items() for one in all_of])
def test_every_dependency_is_locked_at_a_version_that_is_allowed(lock: str, declared: str) -> None:
    """A change of pyproject.toml without ``make lock`` is noticed."""
    requirement = Requirement(declared)
    assert requirement.specifier.contains(pins(lock)[canonicalize_name(requirement.name)], prereleases=True)


@pytest.mark.parametrize("lock", ["production", "build"])
def test_what_is_shipped_is_what_was_tested(lock: str) -> None:
    """Each package of the image, and each that makes its wheel, is of the version that tests ran with."""
    tested = pins("dev")
    assert {name: (pin, tested.get(name)) for name, pin in pins(lock).items() if tested.get(name) != pin} == {}


def test_the_image_has_nothing_of_development() -> None:
    """No test tool, linter, browser or peer that is measured against, but what production's own packages ask for."""
    assert pins("production").keys() & of_development_alone() == ASKED_FOR
