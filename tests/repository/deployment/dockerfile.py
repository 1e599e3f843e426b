"""The Dockerfile as a list of instructions."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from tests.repository import ROOT

FILE: Final = ROOT / "Dockerfile"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; ``stage`` is the name of its stage, or its number where it has none, "" before the first."""

    stage: str
    name: str
    value: str


def parse(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile, its continued lines as one."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found: list[Instruction] = []
    stage, stages = "", 0
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "FROM":
            stage, stages = value.partition(" AS ")[2] or str(stages), stages + 1
        if name:
            found.append(Instruction(stage, name, value.strip()))
    return found


def of_last_stage(instructions: list[Instruction], name: str) -> list[str]:
    """Return the values of the instructions of that name in what becomes the image."""
    last = instructions[-1].stage
    return [one.value for one in instructions if one.stage == last and one.name == name]


def bases(instructions: list[Instruction]) -> list[str]:
    """Return the image that each stage starts from, build arguments put in."""
    arguments = dict(one.value.split("=", 1) for one in instructions if one.name == "ARG")
    froms = [one.value.partition(" AS ")[0] for one in instructions if one.name == "FROM"]
    return [re.sub(r"\$\{(\w+)\}", lambda found: arguments[found[1]], base) for base in froms]


def copied(instructions: list[Instruction]) -> list[str]:
    """Return what is copied out of the repository."""
    values = [one.value.split() for one in instructions if one.name == "COPY" and not one.value.startswith("--from")]
    return [source for value in values for source in value[:-1]]


def environment(instructions: list[Instruction]) -> dict[str, str]:
    """Return what the image puts into the environment of all that runs in it."""
    pairs = [pair for value in of_last_stage(instructions, "ENV") for pair in value.split()]
    return dict(pair.split("=", 1) for pair in pairs)


def health_command(instructions: list[Instruction]) -> str:
    """Return the shell command of the image's HEALTHCHECK."""
    (value,) = of_last_stage(instructions, "HEALTHCHECK")
    return value.partition("CMD ")[2]


def command(instructions: list[Instruction]) -> list[str]:
    """Return what the image runs when nothing else is said."""
    (value,) = of_last_stage(instructions, "CMD")
    words: list[str] = json.loads(value)
    return words
