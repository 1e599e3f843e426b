"""Tests of ``hopwatch schema``: what is told, what is kept, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hopwatch.cli.main import main
from hopwatch.probes.schema_registry import SchemaRegistry
from tests.gate.app_client import Asked
from tests.support.fake_registry import GateRegistry
from tests.support.schemas import BROKEN, CONFLICT, FIRST, Json, record, schema
from tests.support.workspace import CONFIGURATION, Workspace

Captured = pytest.CaptureFixture[str]

OTHER = record({"name": "a", "type": "int", "default": 3}, namespace="com.example.orders.v1")
FINGERPRINT = schema(FIRST).fingerprint.hex()


def run(workspace: Workspace, *arguments: str) -> int:
    """Run a command on the store of a place."""
    return main(["schema", *arguments, "--config", str(workspace.config)])


def file(workspace: Workspace, said: Json) -> str:
    """Return a file that a schema is written to."""
    path = workspace.config.parent / "schema.avsc"
    path.write_text(json.dumps(said), "utf-8")
    return str(path)


def test_a_schema_is_registered_once(workspace: Workspace, capsys: Captured) -> None:
    """Into a store that is made if there is none; the second time it is there already."""
    assert run(workspace, "register", file(workspace, FIRST), "--subject", "orders") == 0
    assert run(workspace, "register", file(workspace, FIRST), "--subject", "orders") == 0
    assert capsys.readouterr().out == (
        f"registered: version 1 of orders, {FINGERPRINT}\nthere already: version 1 of orders, {FINGERPRINT}\n"
    )
    assert run(workspace, "register", file(workspace, FIRST), "--subject", "orders", "--json") == 0
    told = {"subject": "orders", "version": 1, "fingerprint": FINGERPRINT, "is_new": False}
    assert json.loads(capsys.readouterr().out) == told


def test_what_would_break_readers_is_a_finding(workspace: Workspace, capsys: Captured) -> None:
    """Exit 1 with each field and what to do, whether it is to be registered or only looked at."""
    run(workspace, "register", file(workspace, FIRST), "--subject", "orders")
    capsys.readouterr()
    for command in ("register", "check"):
        assert run(workspace, command, file(workspace, BROKEN), "--subject", "orders") == 1
        told = capsys.readouterr()
        assert told.out == f"c: {CONFLICT['problem']}: {CONFLICT['breaks']}\n    give it a default\n"
        assert told.err == (
            "or make it a new major version: the namespace com.example.orders.v2, and a subject of its own\n"
        )
        assert run(workspace, command, file(workspace, BROKEN), "--subject", "orders", "--json") == 1
        assert json.loads(capsys.readouterr().out) == {
            "subject": "orders", "compatible": False, "conflicts": [CONFLICT],
        }  # fmt: skip
    assert run(workspace, "check", file(workspace, FIRST), "--subject", "orders") == 0
    assert capsys.readouterr().out == "it fits orders, which is backward_transitive\n"
    assert run(workspace, "check", file(workspace, FIRST), "--subject", "orders", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"subject": "orders", "compatible": True, "conflicts": []}


def test_what_there_is_is_listed(workspace: Workspace, capsys: Captured) -> None:
    """The latest version of each subject, or all of one; without any, what to do."""
    run(workspace, "register", file(workspace, FIRST), "--subject", "orders")
    capsys.readouterr()
    one = {
        "subject": "orders", "version": 1, "id": 1, "fingerprint": FINGERPRINT, "compatibility": "backward_transitive",
    }  # fmt: skip
    for more in ((), ("--subject", "orders")):
        assert run(workspace, "list", "--json", *more) == 0
        assert json.loads(capsys.readouterr().out) == {"schemas": [one]}
    assert run(workspace, "list") == 0
    assert capsys.readouterr().out.split()[-5:] == [str(value) for value in one.values()]


def test_an_old_version_is_the_newest_again(workspace: Workspace, capsys: Captured) -> None:
    """Though it would break readers, which is what a wrong schema may need; the level is a command of its own."""
    assert run(workspace, "register", file(workspace, FIRST), "--subject", "orders") == 0
    assert run(workspace, "level", "none", "--subject", "orders") == 0
    assert run(workspace, "register", file(workspace, BROKEN), "--subject", "orders") == 0
    assert run(workspace, "level", "forward", "--subject", "orders", "--json") == 0
    assert run(workspace, "register", file(workspace, FIRST), "--subject", "orders") == 1
    capsys.readouterr()
    assert [run(workspace, "restore", "1", "--subject", "orders") for _ in range(2)] == [0, 0]
    assert capsys.readouterr().out == (
        "the newest of orders is version 3, which says what version 1 says\nthe newest of orders is it already\n"
    )
    assert run(workspace, "restore", "2", "--subject", "orders", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"subject": "orders", "version": 4, "is_new": True}
    assert run(workspace, "level", "--subject", "orders", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"subject": "orders", "compatibility": "forward"}
    assert run(workspace, "level", "--subject", "orders") == 0
    assert capsys.readouterr().out == "orders is forward\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("restore", "7", "--subject", "orders"), "there is no version 7 of orders: hopwatch schema list --subject"),
        (("restore", "1", "--subject", "nix"), "there is no subject nix: hopwatch schema list names those that"),
        (("level", "some", "--subject", "orders"), "a level is one of none, backward, backward_transitive, forward, "),
        (("level", "none", "--subject", "a b"), "a subject is 1 to 255 of the characters A-Za-z0-9._-, got 'a b'"),
    ],
)
def test_what_cannot_be_restored_or_set_is_told(
    workspace: Workspace, capsys: Captured, arguments: tuple[str, ...], told: str
) -> None:
    """With what there is; nothing is changed."""
    assert run(workspace, "register", file(workspace, FIRST), "--subject", "orders") == 0
    assert run(workspace, *arguments) == 2
    assert told in capsys.readouterr().err


def test_an_empty_registry_says_what_to_do(workspace: Workspace, capsys: Captured) -> None:
    """Nothing on stdout."""
    assert main(["store", "migrate", "--config", str(workspace.config)]) == 0
    capsys.readouterr()
    assert run(workspace, "list") == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == (
        "", "no schema is registered yet: hopwatch schema register --subject S FILE\n",
    )  # fmt: skip
    assert run(workspace, "list", "--subject", "nobody") == 2
    assert "there is no subject nobody: hopwatch schema list names those that there are" in capsys.readouterr().err


def test_what_cannot_be_used_is_told(workspace: Workspace, capsys: Captured, tmp_path: Path) -> None:
    """Exit 2 for a file that is no schema; 1 for a fingerprint that has a meaning already; 3 without a store."""
    assert run(workspace, "check", file(workspace, FIRST), "--subject", "orders") == 3
    assert "there is no store at" in capsys.readouterr().err
    run(workspace, "register", file(workspace, FIRST), "--subject", "orders")
    capsys.readouterr()
    missing = str(tmp_path / "none.avsc")
    for command in ("register", "check"):
        for path, told in (
            (missing, f"hopwatch: the schema {missing} cannot be read: No such file or directory: name a file of JSON"),
            (file(workspace, ["null", {"type": "map", "values": "X"}]), " at /1/values: there is no type 'X'"),
        ):
            assert run(workspace, command, path, "--subject", "orders") == 2
            assert told in capsys.readouterr().err
        assert run(workspace, command, file(workspace, OTHER), "--subject", "orders") == 1
        told = f"the fingerprint {FINGERPRINT} stands already for a schema that differs"
        assert capsys.readouterr().out.startswith(told)
        assert run(workspace, command, file(workspace, OTHER), "--subject", "orders", "--json") == 1
        found = json.loads(capsys.readouterr().out)
        assert (found["compatible"], found["conflicts"], found["reason"].startswith(told)) == (False, [], True)
    assert run(workspace, "register", file(workspace, FIRST), "--subject", "a b") == 2
    assert "a subject is 1 to 255 of the characters A-Za-z0-9._-, got 'a b'" in capsys.readouterr().err


def test_versions_are_compared(workspace: Workspace, capsys: Captured) -> None:
    """The latest with the one before, any two, or one with a file; and who reads whom."""
    second = record({"name": "a", "type": "long"}, namespace="com.example.orders.v1")
    for said in (FIRST, second):
        assert run(workspace, "register", file(workspace, said), "--subject", "orders") == 0
    capsys.readouterr()
    told = {
        "subject": "orders", "from": 1, "to": 2, "differences": [{"place": "a", "before": "int", "now": "long"}],
        "backward": True, "forward": False,
    }  # fmt: skip
    for more in ((), ("--from", "1", "--to", "2")):
        assert run(workspace, "diff", "--subject", "orders", "--json", *more) == 0
        assert json.loads(capsys.readouterr().out) == told
    path = file(workspace, FIRST)
    assert run(workspace, "diff", "--subject", "orders", "--file", path, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "subject": "orders", "from": 2, "to": path, "differences": [{"place": "a", "before": "long", "now": "int"}],
        "backward": False, "forward": True,
    }  # fmt: skip
    assert run(workspace, "diff", "--subject", "orders") == 0
    shown = capsys.readouterr()
    assert [line.split() for line in shown.out.splitlines()] == [
        ["place", "version", "1", "version", "2"], ["a", "int", "long"],
    ]  # fmt: skip
    assert "version 2 reads what version 1 wrote\nversion 1 does not read what version 2 writes\n" in shown.err
    assert run(workspace, "diff", "--subject", "orders", "--from", "2") == 0
    assert "version 2 and version 2 say the same" in capsys.readouterr().err
    assert run(workspace, "diff", "--subject", "orders", "--to", "1") == 2
    assert "there is nothing before version 1 of orders: name a schema with --file" in capsys.readouterr().err
    assert run(workspace, "diff", "--subject", "orders", "--to", "9") == 2
    told_of_all = "there is no version 9 of orders: hopwatch schema list --subject orders names those that there are"
    assert told_of_all in capsys.readouterr().err
    assert run(workspace, "diff", "--subject", "orders", "--to", "1", "--file", path) == 2
    assert "--to and --file both say what is compared: name one of them" in capsys.readouterr().err


def test_a_module_is_written(workspace: Workspace, capsys: Captured, tmp_path: Path) -> None:
    """To stdout or a file; what no module can be made of is told."""
    run(workspace, "register", file(workspace, FIRST), "--subject", "orders")
    run(workspace, "register", file(workspace, ["null", "int"]), "--subject", "plain")
    capsys.readouterr()
    assert run(workspace, "generate", "python", "--subject", "orders") == 0
    text = capsys.readouterr().out
    assert text.startswith('"""Events of orders, version 1: made by hopwatch schema generate python')
    out = tmp_path / "orders.py"
    assert run(workspace, "generate", "python", "--subject", "orders", "--out", str(out), "--version", "1") == 0
    assert capsys.readouterr().err == f"{out} has the events of orders, version 1\n"
    assert out.read_text("utf-8") == text
    for arguments, told in (
        (("--subject", "nobody"), "there is no subject nobody: hopwatch schema list names those that there are"),
        (("--subject", "plain"), "a module is made of a record"),
        (("--subject", "orders", "--out", str(tmp_path)), f"{tmp_path} cannot be written: Is a directory"),
    ):
        assert run(workspace, "generate", "python", *arguments) == 2
        assert told in capsys.readouterr().err


def test_a_registry_goes_into_another_as_one_file(workspace: Workspace, capsys: Captured, tmp_path: Path) -> None:
    """Twice is once; where the other says otherwise nothing is taken, with one line and exit 1."""
    run(workspace, "register", file(workspace, FIRST), "--subject", "orders")
    run(workspace, "level", "full", "--subject", "orders")
    capsys.readouterr()
    moved = tmp_path / "schemas.json"
    assert run(workspace, "export", "--out", str(moved)) == 0
    assert run(workspace, "export") == 0
    assert capsys.readouterr().out == moved.read_text()
    other = Workspace(tmp_path / "other")
    other.folder.mkdir()
    other.config.write_text(CONFIGURATION)
    assert run(other, "import", str(moved)) == 0
    assert capsys.readouterr().out == "1 schemas, 1 versions and 1 levels are new\n"
    assert run(other, "import", str(moved), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"schemas": 0, "versions": 0, "levels": 0}
    run(other, "level", "none", "--subject", "orders")
    capsys.readouterr()
    told = "the compatibility of orders is none here, and full in the file"
    assert run(other, "import", str(moved)) == 1
    assert capsys.readouterr().out == f"nothing is imported: {told}\n"
    assert run(other, "import", str(moved), "--json") == 1
    assert json.loads(capsys.readouterr().out) == {"schemas": 0, "versions": 0, "levels": 0, "reason": told}
    for path, told in (
        (tmp_path / "none", "cannot be read: No such file or directory: name one of hopwatch schema export"),
        (other.config, "it is no JSON: "),
    ):
        assert run(other, "import", str(path)) == 2
        assert told in capsys.readouterr().err
    assert run(other, "export", "--out", str(tmp_path)) == 2
    assert "cannot be written: Is a directory: name another file" in capsys.readouterr().err


def test_a_schema_is_checked_by_a_registry_elsewhere(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a configuration or a store; a registry that is away is exit 3, so that no pull request passes by it."""
    asked = Asked()
    asked.ask("PUT", "/subjects/orders/schemas", FIRST)
    monkeypatch.setattr(SchemaRegistry, "_exchange", lambda _, *request: GateRegistry(asked)._exchange(*request))
    arguments = ["schema", "check", "--subject", "orders", "--registry", "http://registry:8081"]
    assert main([*arguments, file(workspace, FIRST)]) == 0
    assert capsys.readouterr().out == "it fits orders, which is backward_transitive\n"
    assert main([*arguments, file(workspace, BROKEN), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"subject": "orders", "compatible": False, "conflicts": [CONFLICT]}
    assert main([*arguments, file(workspace, OTHER)]) == 1
    assert "stands already for a schema that differs" in capsys.readouterr().out
    assert main([*arguments[:-1], "registry:8081", file(workspace, FIRST)]) == 2
    assert "--registry: a registry is http://HOST:PORT" in capsys.readouterr().err
    monkeypatch.undo()
    assert main([*arguments[:-1], "http://127.0.0.1:1", file(workspace, FIRST)]) == 3
    assert "the registry http://127.0.0.1:1 does not answer: Connection refused" in capsys.readouterr().err


def test_a_type_of_a_protocol_is_registered_with_what_it_uses(
    workspace: Workspace, capsys: Captured, tmp_path: Path
) -> None:
    """Of its own file and of others; a flag or a file that does not fit is told."""
    line = record({"name": "price", "type": "hopwatch.types.v1.Money"}, name="Line", namespace="shop")
    order = record({"name": "line", "type": "shop.Line"}, {"name": "mark", "type": "shop.Mark"}, name="Order")
    mark, protocol = tmp_path / "mark.avsc", tmp_path / "shop.avpr"
    mark.write_text(json.dumps({"type": "fixed", "name": "shop.Mark", "size": 2}))
    protocol.write_text(json.dumps({"protocol": "P", "types": [line, order]}))
    for more in ((), ("--type", "Order")):
        assert run(workspace, "register", str(protocol), "--subject", "orders", "--with", str(mark), *more) == 0
    single, idl = file(workspace, order), tmp_path / "shop.avdl"
    idl.write_text("protocol P {}")
    made = f"is compiled by Avro's own tools first: java -jar avro-tools.jar idl {idl} {protocol}"
    assert run(workspace, "check", single, "--subject", "orders", "--with", str(mark), "--with", str(protocol)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "it fits orders, which is backward_transitive"
    (tmp_path / "big").write_bytes(b" " * 2**21)
    for arguments, told in (
        ((str(protocol),), "there is no type 'shop.Mark'"),
        ((str(protocol), "--type", "x"), "shop.avpr: the protocol has no type x, it has shop.Line, Order"),
        ((str(idl),), made),
        ((single, "--with", str(idl)), made),
        ((single, "--type", "x"), "--type is for a protocol, and "),
        ((single, "--with", str(tmp_path / "big")), "big: a schema has at most 1,048,576 bytes, got more"),
        ((single, "--with", str(workspace.config)), "hopwatch.toml: a schema is JSON: "),
        ((single, "--with", str(tmp_path / "none")), "none cannot be read: No such file or directory: name a file of"),
    ):
        assert run(workspace, "check", *arguments, "--subject", "orders") == 2
        assert told in capsys.readouterr().err
