"""Tests of the exception tree."""

from __future__ import annotations

import re

import pytest

from hopwatch.monitor import errors
from hopwatch.monitor.errors import ConfigurationError, DependencyError, HopwatchError, Problem, SettingsError


def _tree(root: type[HopwatchError]) -> set[type[HopwatchError]]:
    return {root}.union(*(_tree(branch) for branch in root.__subclasses__()))


def test_the_drawn_tree_is_the_real_one() -> None:
    """The module's docstring names every class of the tree and no other."""
    drawn = set(re.findall(r"\b[A-Z]\w+Error\b", errors.__doc__ or ""))
    assert drawn == {branch.__name__ for branch in _tree(HopwatchError) if branch.__module__ == errors.__name__}


@pytest.mark.parametrize(("branch", "exit_code"), [(HopwatchError, 70), (ConfigurationError, 2), (DependencyError, 3)])
def test_a_branch_has_one_exit_code(branch: type[HopwatchError], exit_code: int) -> None:
    """A class below a branch ends the program as the branch does."""
    own = _tree(branch) if branch is not HopwatchError else {branch}
    assert {member.exit_code for member in own} == {exit_code}


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("it is wrong", "store.url", "hopwatch.toml", 7), "hopwatch.toml:7: store.url: it is wrong"),
        (Problem("not TOML", "", "hopwatch.toml", 7, 3), "hopwatch.toml:7:3: not TOML"),
        (Problem("it is wrong", "store.url", "--url"), "--url: store.url: it is wrong"),
        (Problem("it is wrong"), "it is wrong"),
    ],
)
def test_a_problem_says_what_is_known_of_its_place(problem: Problem, text: str) -> None:
    """File, line, column and key stand before the message, as far as they are known."""
    assert str(problem) == text


def test_a_settings_error_tells_all_its_problems() -> None:
    """One line a problem, and the problems themselves beside the text."""
    problems = [Problem("one"), Problem("two")]
    error = SettingsError(problems)
    assert str(error) == "one\ntwo"
    assert error.problems == tuple(problems)
