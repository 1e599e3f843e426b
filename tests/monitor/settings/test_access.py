"""Tests of ``[transport.kafka]``: which layer a secret comes from, and where files are looked up."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from hopwatch.monitor.errors import SettingsError
from hopwatch.monitor.settings import load
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.kafka.client import read_access

PREFIX = "HOPWATCH_TRANSPORT__KAFKA__"
USER = 'security_protocol = "SASL_SSL"\nsasl_mechanism = "PLAIN"\nsasl_username = "me"\n'
FORMS = {"value": "sasl_password", "file": "sasl_password_file"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a configuration, with a secret; the current folder is another one, with another secret."""
    for name in ("etc", "here"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "secret").write_text(f"in-{name}\n")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "etc"


def _access(folder: Path, text: str = "", **environ: str) -> KafkaAccess:
    file = folder / "hopwatch.toml"
    file.write_text(f"[transport.kafka]\n{USER}{text}")
    return load(
        file, flags={}, environ={PREFIX + name.upper(): value for name, value in environ.items()}
    ).transport.access


@pytest.mark.parametrize(("above", "below"), list(product(FORMS, FORMS)))
def test_a_secret_of_the_environment_comes_before_that_of_the_file(folder: Path, above: str, below: str) -> None:
    """A secret of the environment overrides that of the file, as a value or as a file's name."""
    texts = {"value": "in-layer", "file": "secret"}
    (folder / "secret").unlink()
    access = _access(folder, f'{FORMS[below]} = "{texts[below]}"', **{FORMS[above]: texts[above]})
    assert access.sasl_password == {"value": "in-layer", "file": "in-here"}[above]


def test_a_variable_that_is_empty_leaves_the_file_s_secret(folder: Path) -> None:
    """An orchestrator that hands on what is not set takes nothing away."""
    empty = {"sasl_password": "", "sasl_password_file": ""}
    passwords = [
        _access(folder, text, **empty).sasl_password
        for text in (f'{FORMS["file"]} = "secret"', f'{FORMS["value"]} = "x"')
    ]
    assert passwords == ["in-etc", "x"]


def test_files_are_relative_to_the_layer_that_names_them(folder: Path) -> None:
    """Those of hopwatch.toml to its folder, those of the environment to the current one; absolute ones stay."""
    text = 'sasl_password_file = "secret"\nssl_ca_file = "ca.pem"\nssl_certificate_file = "/tls/c.pem"'
    access = _access(folder, text, ssl_key_file="key.pem", ssl_key_password_file="secret")  # noqa: S106 - a file
    assert (access.sasl_password, access.ssl_key_password) == ("in-etc", "in-here")
    places = (access.ssl_ca_file, access.ssl_certificate_file, access.ssl_key_file)
    assert places == (f"{folder}/ca.pem", "/tls/c.pem", f"{Path.cwd()}/key.pem")


@pytest.mark.parametrize("where", ["file", "environment"])
def test_a_secret_that_one_layer_says_twice_is_refused(folder: Path, where: str) -> None:
    """With the key and where it was said; the secret itself is not shown."""
    said = {"sasl_password": "hush", "sasl_password_file": "secret"}
    text = "\n".join(f'{key} = "{value}"' for key, value in said.items())
    with pytest.raises(SettingsError) as refused:
        _access(folder, **({"text": text} if where == "file" else said))
    source = f"{folder}/hopwatch.toml:6" if where == "file" else f"environment {PREFIX}SASL_PASSWORD_FILE"
    assert str(refused.value) == (
        f"{source}: transport.kafka.sasl_password_file: "
        "sasl_password and sasl_password_file both say the secret: keep one of them"
    )


@pytest.mark.parametrize("password", ["12345", '"quoted"', "true", "a\nb = 1"])
def test_a_variable_says_the_same_to_monitor_and_probe(folder: Path, password: str) -> None:
    """A password is text as it stands, though it might be read as something else."""
    variables = {"sasl_password": password, "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}
    environ = {PREFIX + name.upper(): value for name, value in variables.items()}
    probe = read_access(environ | {f"{PREFIX}SASL_USERNAME": "me"})
    assert _access(folder, **variables) == probe
    assert probe.sasl_password == password


def test_a_secret_that_is_no_text_is_not_shown(folder: Path) -> None:
    """A password of digits without quotes is a mistake, and still a password."""
    with pytest.raises(SettingsError, match=r"sasl_password: this is a text, got \*\*\*$"):
        _access(folder, "sasl_password = 12345")
