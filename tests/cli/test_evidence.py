"""Tests of ``hopwatch evidence``: what is exported, what is refused, and what a verification says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from hopwatch.cli.main import main
from tests.support.report import reported
from tests.support.workspace import Workspace, one_of_ten_lost

MINUTE: Final = ("--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:01:00Z")
NEXT: Final = ("--from", "2026-01-01T00:01:00Z", "--to", "2026-01-01T00:02:00Z")
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _watched(workspace: Workspace) -> None:
    """Let one of ten messages of the first window be lost, and make the keys."""
    workspace.configure().watch(*one_of_ten_lost())
    write_keys(workspace.folder)


def write_keys(folder: Path) -> None:
    """Write a pair of keys."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(private)
    (folder / "public.pem").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def export(workspace: Workspace, name: str, *arguments: str) -> int:
    """Export a file, signed by the key."""
    file, key = workspace.folder / name, workspace.folder / "key.pem"
    config = ("--config", str(workspace.config))
    return main(["evidence", "export", str(file), *config, "--key", str(key), *arguments])


def verify(workspace: Workspace, name: str, *arguments: str) -> int:
    """Verify a file."""
    file, key = workspace.folder / name, workspace.folder / "public.pem"
    return main(["evidence", "verify", str(file), "--public-key", str(key), *arguments])


def read_values(file: Path) -> list[dict[str, Any]]:
    """Return the JSON of each line of the chain."""
    lines = file.read_bytes().splitlines()[:-1]
    return [json.loads(line.partition(b" ")[2]) for line in lines]


def test_the_windows_are_those_of_the_report(workspace: Workspace, capsys: Captured) -> None:
    """Field for field, with all lost ids, and the rules that they were judged by."""
    assert export(workspace, "e", *MINUTE) == 0
    assert "orders: 1 final windows, 1 ids of what is missing" in capsys.readouterr().out
    header, window, ids, end = read_values(workspace.folder / "e")
    (stream,) = reported(workspace.store_url)["streams"]
    assert {"kind": "window", "stream": "orders", **stream["windows"][0], "revisions": []} == window
    (lost,) = [node["lost_ids"] for node in window["nodes"] if node["lost_ids"]]
    assert (ids["kind"], ids["node"], ids["ids"]) == ("lost_ids", "b", lost)
    (rules,) = header["streams"]
    (version,) = rules["versions"]
    assert version["pathway"][0] == ["a", "b"]
    assert (version["valid_from"], version["transit_us"], version["shards"]) == (None, 150_000_000, 1)
    assert {"hopwatch", "schema", "exported"} <= header.keys()
    assert end["streams"] == [{"stream": "orders", "windows": 1, "lost_ids": 1, "left_out": 0, "absent": 0}]


def test_a_file_is_sound_until_a_digit_is_changed(workspace: Workspace, capsys: Captured) -> None:
    """Then its line and its window are named, and the exit code is 1."""
    assert export(workspace, "e", *MINUTE, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert verify(workspace, "e", "--json") == 0
    sound = json.loads(capsys.readouterr().out)
    assert (sound["sound"], sound["hash"], sound["streams"]) == (True, told["hash"], told["streams"])
    assert verify(workspace, "e") == 0
    assert "is sound: from 2026-01-01T00:00:00Z to 2026-01-01T00:01:00Z" in capsys.readouterr().out
    file = workspace.folder / "e"
    file.write_bytes(file.read_bytes().replace(b'"known":10', b'"known":11'))
    assert verify(workspace, "e") == 1
    out = capsys.readouterr().out
    assert "line 2: the window 2026-01-01T00:00:00Z of orders was changed" in out
    assert out.endswith("is NOT sound\n")


def test_the_same_windows_are_the_same_lines(workspace: Workspace) -> None:
    """But for the moment of the export: whoever has two files can compare them."""
    assert export(workspace, "one", *MINUTE) == 0
    assert export(workspace, "two", *MINUTE) == 0
    one, two = (read_values(workspace.folder / name) for name in ("one", "two"))
    assert one[1:] == two[1:]


def test_files_are_a_chain(workspace: Workspace, capsys: Captured) -> None:
    """A file names the last hash of the one before; a file of another range does not follow."""
    assert export(workspace, "one", *MINUTE) == 0
    after = str(workspace.folder / "one")
    assert export(workspace, "two", *NEXT, "--after", after, "--allow-open") == 0
    assert verify(workspace, "two", "--after", after) == 0
    capsys.readouterr()
    assert verify(workspace, "one", "--after", str(workspace.folder / "two")) == 1
    assert "it does not follow the file before" in capsys.readouterr().out


def test_windows_that_are_not_final_are_refused(workspace: Workspace, capsys: Captured) -> None:
    """With the first of them, or left out and counted; minutes that the store does not have are counted, too."""
    later = (*MINUTE[:2], "--to", "2026-01-01T12:00:00Z")
    assert export(workspace, "e", *later) == 2
    told = "windows of orders from 2026-01-01T00:01:00Z on are not final yet: export a range that ends before, or leave"
    assert told in capsys.readouterr().err
    assert not (workspace.folder / "e").exists()
    assert export(workspace, "e", *later, "--allow-open") == 0
    assert "719 minutes of which the store has no window" in capsys.readouterr().out


def test_a_command_signs(workspace: Workspace, capsys: Captured) -> None:
    """Its stdin is the message; the key never comes near."""
    folder, config = workspace.folder, ("--config", str(workspace.config))
    script = folder / "sign.sh"
    script.write_text(
        f'set -e\ncat > "$0.message"\nopenssl pkeyutl -sign -rawin -inkey {folder}/key.pem -in "$0.message" | base64\n'
    )
    asked = ["evidence", "export", str(folder / "e"), *config, *MINUTE, "--sign-command", f"sh {script}"]
    assert main(asked) == 0
    assert verify(workspace, "e") == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("sh -c 'echo no key >&2; exit 7'", "--sign-command ended with 7: no key"),
        ("false", "--sign-command ended with 1: it said nothing on stderr"),
        ("echo c2hvcnQ=", "writes an Ed25519 signature in base64 to stdout, got 9 other bytes"),
        ("no-such-program", "--sign-command failed: [Errno 2] No such file or directory: 'no-such-program'"),
        ("'", "--sign-command is no command line: No closing quotation"),
        (" ", "--sign-command is empty: give a program that signs what is on its stdin"),
    ],
)
def test_a_command_that_does_not_sign_leaves_no_file(
    workspace: Workspace, capsys: Captured, command: str, told: str
) -> None:
    """And says why."""
    file, config = str(workspace.folder / "e"), ("--config", str(workspace.config))
    assert main(["evidence", "export", file, *config, *MINUTE, "--sign-command", command]) == 2
    assert told in capsys.readouterr().err
    assert not (workspace.folder / "e").exists()
    assert list(workspace.folder.glob(".e.*")) == []


def test_evidence_is_never_overwritten(workspace: Workspace, capsys: Captured) -> None:
    """A file that is there stays as it is."""
    (workspace.folder / "e").write_text("mine")
    assert export(workspace, "e", *MINUTE) == 2
    assert "e exists already: name another file, evidence is never overwritten" in capsys.readouterr().err
    assert (workspace.folder / "e").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--from", "2026-01-01T00:00:30Z", "--to", "2026-01-01T00:01:00Z"), "--from is a whole UTC minute"),
        (("--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:01:30Z"), "--to is a whole UTC minute"),
        (("--from", "2026-01-01T00:01:00Z", "--to", "2026-01-01T00:00:00Z"), "let --from be the earlier"),
        ((*MINUTE, "--stream", "nix"), "--stream names 'nix', the configuration has: orders"),
        ((*MINUTE, "--sign-command", "true"), "give --key FILE or --sign-command COMMAND, one of them"),
        ((*MINUTE, "--after", "{folder}/hopwatch.toml"), "is no whole file of evidence: run hopwatch evidence verify"),
        ((*MINUTE, "--after", "{folder}/nowhere"), "nowhere cannot be read: No such file"),
        ((*MINUTE, "--key", "{folder}/nowhere"), "--key {folder}/nowhere cannot be read: No such file"),
        ((*MINUTE, "--key", "{folder}/public.pem"), "holds no private key in PEM without a password"),
        ((*MINUTE, "--key", "{folder}/rsa.pem"), "is a key of another kind, Ed25519 is needed: make one with"),
    ],
)
def test_what_cannot_be_exported_is_said(
    workspace: Workspace, capsys: Captured, arguments: tuple[str, ...], told: str
) -> None:
    """Before anything is written."""
    folder = workspace.folder
    rsa = generate_private_key(65537, 2048)
    (folder / "rsa.pem").write_bytes(rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    assert export(workspace, "e", *(one.format(folder=folder) for one in arguments)) == 2
    assert told.format(folder=folder) in capsys.readouterr().err
    assert not (folder / "e").exists()


def test_evidence_without_a_signer_is_refused(workspace: Workspace, capsys: Captured) -> None:
    """A chain that anybody can count anew shows nothing."""
    file, config = str(workspace.folder / "e"), ("--config", str(workspace.config))
    assert main(["evidence", "export", file, *config, *MINUTE]) == 2
    assert "evidence is signed: give --key FILE or --sign-command COMMAND" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_said(workspace: Workspace, capsys: Captured) -> None:
    """With its name."""
    assert export(workspace, "no/such/e", *MINUTE) == 2
    assert "no/such/e cannot be written: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"no key", "holds no public key in PEM"), (b"", "holds no public key in PEM"), (None, "cannot be read: No such")],
)
def test_a_public_key_that_is_none_is_said(
    workspace: Workspace, capsys: Captured, content: bytes | None, told: str
) -> None:
    """With the flag that named it."""
    (workspace.folder / "public.pem").unlink()
    if content is not None:
        (workspace.folder / "public.pem").write_bytes(content)
    assert verify(workspace, "hopwatch.toml") == 2
    said = capsys.readouterr().err
    assert "--public-key" in said
    assert told in said


def test_a_public_key_of_another_kind_is_said(workspace: Workspace, capsys: Captured) -> None:
    """RSA is none."""
    public = generate_private_key(65537, 2048).public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (workspace.folder / "public.pem").write_bytes(pem)
    assert verify(workspace, "hopwatch.toml") == 2
    assert "is a key of another kind, Ed25519 is needed" in capsys.readouterr().err


def test_a_dozen_lines_of_python_verify_a_chain(workspace: Workspace, capsys: Captured) -> None:
    """The program that the page shows, which has nothing of Hopwatch in it."""
    assert export(workspace, "e", *MINUTE, "--json") == 0
    page = (Path(__file__).parents[2] / "docs" / "EVIDENCE.md").read_text()
    program = page.partition("```python\n")[2].partition("```")[0]
    (workspace.folder / "check.py").write_text(program)
    told = json.loads(capsys.readouterr().out)
    file = workspace.folder / "e"
    asked = [sys.executable, "check.py", str(file)]
    done = subprocess.run(asked, cwd=workspace.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, told["hash"])
    file.write_bytes(file.read_bytes().replace(b'"known":10', b'"known":11'))
    assert subprocess.run(asked, cwd=workspace.folder, capture_output=True, check=False).returncode == 1
