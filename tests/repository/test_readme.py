"""Tests of README and QUICKSTART that start nothing; tests/e2e/test_documented.py runs what they show."""

from __future__ import annotations

import re
import shlex
import subprocess
import uuid
from pathlib import Path
from typing import Final

import pytest

from hopwatch import Probe
from hopwatch.monitor import settings
from tests.repository import ROOT
from tests.repository.deployment import commands
from tests.repository.project import PROJECT
from tests.support import page_blocks
from tests.support.page_blocks import Command

PAGES: Final = ("README.md", "docs/QUICKSTART.md")
README: Final = page_blocks.page("README.md")
MOST_LINES: Final = 120
NEVER_RUN: Final = frozenset({"make", "sleep"})
"""What the tests that follow a page put something else in the place of."""


def test_readme_is_read_in_two_minutes() -> None:
    """The README has at most the number of lines that can be read in two minutes."""
    assert README.count("\n") <= MOST_LINES


def test_no_word_of_ours_is_used_before_it_is_explained() -> None:
    """In what a newcomer reads first; output that is shown may have them."""
    before = re.sub(r"^```.*?^```$", "", README[: README.index("\n## Words\n")], flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"(?i)\b(?:windows?|verdicts?|books|pathways?|surely lost)\b", before) == []


def test_the_first_snippet_stamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as it stands, with a message, it leaves records in the spool."""
    monkeypatch.chdir(tmp_path)
    snippet = page_blocks.of(README, "python")[0]
    handled: list[int] = []
    place = {
        "message_id": uuid.UUID(int=1),
        "event_time": 1_760_000_000_000_000,
        "message": 1,
        "handle": handled.append,
    }
    exec(snippet, place)  # noqa: S102 - the page's own code is what is tested
    probe = place["probe"]
    assert isinstance(probe, Probe)
    probe.close()
    assert handled == [1]
    assert list(tmp_path.glob("var/spool/*/*.seg")) != []


def test_the_extras_that_are_installed_are_there() -> None:
    """Under the name of the package."""
    installed = re.findall(r"pip install '?(\w+)(?:\[([\w,]+)\])?", README)
    named = {extra for _, extras in installed for extra in extras.split(",") if extra}
    assert {name for name, _ in installed} == {PROJECT["project"]["name"]}
    assert named <= PROJECT["project"]["optional-dependencies"].keys()


@pytest.mark.parametrize("targets", re.findall(r"`make ([a-z ]+)`", README))
def test_what_make_is_asked_for_is_there(targets: str) -> None:
    """Each target of a sentence."""
    command = ["make", "-C", str(ROOT), "-n", *targets.split()]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_the_settings_of_readme_are_valid(tmp_path: Path) -> None:
    """Eight lines make a configuration."""
    (table,) = page_blocks.of(README, "toml")
    (tmp_path / "hopwatch.toml").write_text(table)
    assert table.count("\n") == 8
    assert list(settings.load(tmp_path / "hopwatch.toml", flags={}, environ={}).streams) == ["orders"]


@pytest.mark.parametrize("name", PAGES)
def test_every_block_is_one_that_is_run(name: str) -> None:
    """There is no language that no test runs, and every file that a command names is shown."""
    text = page_blocks.page(name)
    told = {language for language, _ in page_blocks.blocks(text)}
    assert told <= {"python", "toml", "console"}
    assert text.count("\n```") == 2 * len(page_blocks.blocks(text))
    named = {word for command in page_blocks.commands(text) for word in command.line.split() if word.endswith(".py")}
    assert page_blocks.files(text).keys() == named != set()


@pytest.mark.parametrize("command", [one for name in PAGES for one in page_blocks.commands(page_blocks.page(name))])
def test_every_command_is_taken(command: Command) -> None:
    """By the program itself, also those that take long."""
    for words in commands.of_script(command.line.replace("$?", "").partition(" > ")[0]):
        if words and words[0] == commands.PROGRAM:
            assert commands.refusal(*words[1:]) == ""
        else:
            assert words[:1] == [] or words[0] in {"python", *NEVER_RUN}


def test_the_demo_of_readme_takes_its_flags() -> None:
    """The flags of the demo stand in ARGS, and the command accepts them."""
    (line,) = [one.line for one in page_blocks.commands(README) if one.line.startswith("make demo")]
    (flags,) = [word.removeprefix("ARGS=") for word in shlex.split(line) if word.startswith("ARGS=")]
    assert commands.refusal("demo", *shlex.split(flags)) == ""


@pytest.mark.parametrize(
    ("shown", "printed", "is_so"),
    [
        ("lost 20", "lost   20\n", True),
        ("lost 20", "lost 21", False),
        ("lag 3 µs at 2026-01-01 10:00Z", "lag 1,200.5 ms at 2027-02-03 11:30Z", True),
        ("a\n…\nz", "a\nb\nc\nz", True),
        ("a\n…\nz", "a\nz", True),
        ("a\n…\nz", "a\nb", False),
        ("a\nz", "a\nb\nz", False),
        ("OK java …", "OK java Java 17 at x", True),
        ("OK java …", "FAIL java none", False),
        ("a host-17 b", "a vm-2041 b", True),
        ("────", "──────────", True),
    ],
)
def test_what_is_printed_is_compared_up_to_what_varies(shown: str, printed: str, *, is_so: bool) -> None:
    """Blanks, moments and spans vary; counts, words and lines that are not left out do not."""
    assert page_blocks.is_printed(shown, printed) is is_so


def test_figures_may_vary_where_a_page_shows_a_run_of_the_demo() -> None:
    """But not the words between."""
    assert page_blocks.is_printed("lost 20 = 20 ok", "lost 7,149 = 7,149 ok", has_other_figures=True)
    assert not page_blocks.is_printed("lost 20 = 20 ok", "lost 7,149 = 7,150 differs", has_other_figures=True)
