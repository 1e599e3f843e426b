"""Tests of docker-compose.yml and the Dockerfile: all that they name exists, and whatever does not is told.

No Docker is needed: the files are read as Docker reads them, and held against the program itself. ``tests/real`` runs
what they say against a real broker and a real database.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final, cast

import pytest

from hopwatch.cli.main import main
from hopwatch.demo.configuration import format_configuration
from hopwatch.demo.stream import NODES
from hopwatch.monitor import topics
from hopwatch.monitor.spark import job
from tests.repository import ROOT
from tests.repository.deployment import (
    alerting,
    commands,
    compose,
    confinement,
    dockerfile,
    pages,
    places,
    programs,
    variables,
)
from tests.repository.deployment.changes import CHANGES, CONFIG, DOCKERFILE_CHANGES, GONE, TOPIC_URL
from tests.repository.deployment.compose import MissingError
from tests.repository.deployment.deployment import Deployment

RULES: Final = (*confinement.RULES, *programs.RULES, *places.RULES, *variables.RULES, *alerting.RULES, *pages.RULES)


def _problems(deployment: Deployment) -> list[str]:
    return [problem for rule in RULES for problem in rule(deployment)]


def _changed(path: tuple[str, ...], value: object) -> Deployment:
    """Return the deployment with one thing changed in a service, and in no other that shares the text."""
    raw = compose.raw()
    *above, last = path
    place = raw["services"]
    for part in above:
        place = place[part]
    key: Any = int(last) if isinstance(place, list) else last
    if value is GONE:
        del place[key]
    else:
        place[key] = value
    return Deployment(raw)


def test_all_rules_hold() -> None:
    """Of the files as they are."""
    assert _problems(Deployment()) == []


@pytest.mark.parametrize(("path", "value", "told"), CHANGES)
def test_what_is_wrong_with_a_service_is_told(path: tuple[str, ...], value: object, told: list[str]) -> None:
    """One thing changed, and the rules tell it, and nothing else."""
    assert _problems(_changed(path, value)) == told


@pytest.mark.parametrize(("found", "instead", "told"), DOCKERFILE_CHANGES)
def test_what_is_wrong_with_the_image_is_told(found: str, instead: str, told: list[str]) -> None:
    """One line changed, and the rules tell it, and nothing else."""
    text = dockerfile.FILE.read_text("utf-8")
    assert text.count(found) == 1
    assert _problems(Deployment(dockerfile=text.replace(found, instead))) == told


def test_every_rule_has_a_change_that_it_notices() -> None:
    """No rule could be left out unnoticed."""
    broken = [_changed(path, value) for path, value, _ in CHANGES]
    assert [rule.__name__ for rule in RULES if not any(list(rule(one)) for one in broken)] == []


def test_the_password_is_asked_for_in_words() -> None:
    """The error for a missing password says what to write in which file."""
    with pytest.raises(MissingError) as told:
        compose.interpolated(compose.raw(), {})
    where = "into the file .env beside docker-compose.yml"
    assert str(told.value) == f"POSTGRES_PASSWORD: write POSTGRES_PASSWORD=... {where}"
    assert ".env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


def test_variables_are_put_in_as_compose_does() -> None:
    """One that is set, one with a default, one that is empty, and a dollar that is none of them."""
    tree = {"a": "${ONE}-${TWO:-2}-${THREE}", "b": ["$$HOME", 4], "c": None}
    assert compose.interpolated(tree, {"ONE": "1"}) == {"a": "1-2-", "b": ["$HOME", 4], "c": None}


@pytest.mark.parametrize("weak", [True, False])
def test_the_topic_is_made_as_the_program_allows(
    weak: bool,  # noqa: FBT001 - pytest's
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One copy on one broker, which the program refuses to whoever does not ask for it."""
    deployment, made = Deployment(), []
    monkeypatch.setattr(topics, "create_topic", lambda place, _, **numbers: made.append((str(place), numbers)))
    for variable, value in deployment.environment("topic").items():
        if variable != "PATH":
            monkeypatch.setenv(variable, value)
    *_, line = commands.simple(deployment.services["topic"]["command"])
    words = [word.replace(CONFIG, str(ROOT / "docker" / "hopwatch.toml")) for word in line[1:]]
    code = main([word for word in words if weak or word != "--allow-weak"])
    if weak:
        numbers = {"partitions": 6, "replication": 1, "min_insync": 1, "retention_hours": 168}
        assert (code, made) == (0, [(TOPIC_URL, numbers)])
    else:
        assert (code, made) == (2, [])
        assert "pass --allow-weak if that will do" in capsys.readouterr().err


def test_the_healthcheck_looks_where_the_job_writes(tmp_path: Path) -> None:
    """Spark keeps a file for each micro-batch that is done in ``commits`` below the job's checkpoint."""
    place = job.JobContext(cast("Any", None), cast("Any", None), {}, tmp_path)
    look = next(commands.of_script(dockerfile.health_command(Deployment().instructions)))[1]
    assert look.replace("$HOPWATCH_MONITOR__WORKDIR", str(tmp_path)) == str(place.checkpoint / "commits")


def test_the_demo_s_stream_is_watched_as_the_demo_says() -> None:
    """The streams of docker/hopwatch.toml are those of the demo's own configuration."""
    watched = tomllib.loads((ROOT / "docker" / "hopwatch.toml").read_text("utf-8"))
    assert watched["streams"] == tomllib.loads(format_configuration(NODES, "", "", "", None))["streams"]
