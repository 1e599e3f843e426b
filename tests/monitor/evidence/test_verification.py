"""Laws of evidence files: whatever is changed, taken out, put in or cut off is found, and named."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.evidence.chain import FORMAT, HashChain, encode_canonical, split_line
from hopwatch.monitor.evidence.signature import build_message
from hopwatch.monitor.evidence.verification import MAX_FINDINGS, Verification, read_head, verify_file, verify_succession

KEY: Final = Ed25519PrivateKey.generate()
OTHER: Final = Ed25519PrivateKey.generate()


def build_file(*, previous: str | None = None, span: tuple[str, str] = ("A", "B"), windows: int = 3) -> list[bytes]:
    """Return the lines of a file of one stream; each window has two lost ids."""
    chain = HashChain()
    values: list[dict[str, Any]] = [
        {"kind": "header", "format": FORMAT, "from": span[0], "to": span[1], "previous": previous}
    ]
    for at in range(windows):
        values += [
            {"kind": "window", "stream": "orders", "window_start": f"W{at}", "lost": 2, "known": 1000 + at},
            {"kind": "lost_ids", "stream": "orders", "window_start": f"W{at}", "node": "b", "ids": ["x", "y"]},
        ]
    values.append({"kind": "end", "streams": [{"stream": "orders", "windows": windows, "lost_ids": 2 * windows}]})
    lines = [chain.build_line(value) for value in values]
    return [*lines, sign(chain.head)]


def sign(head: str, key: Ed25519PrivateKey = KEY) -> bytes:
    """Return the line of a signature."""
    return json.dumps({"signature": b64encode(key.sign(build_message(head))).decode()}).encode() + b"\n"


def verify(folder: Path, lines: list[bytes]) -> Verification:
    """Write a file and verify it."""
    file = folder / "evidence"
    file.write_bytes(b"".join(lines))
    return verify_file(file, KEY.public_key())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for all cases."""
    return tmp_path_factory.mktemp("evidence")


def test_a_file_as_it_was_written_is_sound(folder: Path) -> None:
    """And tells its range, its counts and its last hash."""
    found = verify(folder, build_file())
    assert (found.findings, found.is_sound, found.lines) == ([], True, 8)
    assert found.header is not None
    assert found.end is not None
    assert (found.header["from"], found.end["streams"][0]["windows"]) == ("A", 3)
    assert found.head == read_head(folder / "evidence")


@given(st.data())
def test_any_other_byte_is_found(folder: Path, data: st.DataObject) -> None:
    """A file with one other byte, without one of its bytes, or cut off before one is not sound."""
    whole = b"".join(build_file())
    at = data.draw(st.integers(0, len(whole) - 2))
    other = bytes([data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))])
    changed = data.draw(
        st.sampled_from([whole[:at] + other + whole[at + 1 :], whole[:at] + whole[at + 1 :], whole[:at]])
        if whole[at : at + 1] != whole[at + 1 : at + 2]
        else st.just(whole[:at] + other + whole[at + 1 :])
    )
    assert not verify(folder, [changed]).is_sound or json_is_the_same(changed, whole)


def json_is_the_same(changed: bytes, whole: bytes) -> bool:
    """Return whether only the last line differs, and says the same signature: its JSON is not of the chain."""
    return changed.splitlines()[:-1] == whole.splitlines()[:-1] and json.loads(changed.splitlines()[-1]) == json.loads(
        whole.splitlines()[-1]
    )


def test_a_changed_digit_is_named(folder: Path) -> None:
    """By its line, its window and its stream; nothing else is said."""
    lines = build_file()
    lines[3] = lines[3].replace(b"1001", b"1002")
    told = "line 4: the window W1 of orders was changed, or lines before it"
    assert verify(folder, lines).findings == [told]
    lines = build_file()
    lines[4] = lines[4].replace(b'"x"', b'"z"')
    told = "line 5: the lost ids at b in the window W1 of orders was changed, or lines before it"
    assert verify(folder, lines).findings == [told]


def test_a_line_that_was_taken_out_is_named_by_the_next(folder: Path) -> None:
    """And by the counts of the last line."""
    lines = build_file()
    del lines[3]
    assert verify(folder, lines).findings == [
        "line 4: the lost ids at b in the window W1 of orders was changed, or lines before it",
        "it has 2 windows of orders, its last line says otherwise",
    ]


def test_a_forged_chain_has_no_signature(folder: Path) -> None:
    """A chain of which all hashes were counted anew is found by its signature; another key is none."""
    forged, genuine = build_file(windows=4), build_file()
    told = "the signature is not by this key over this file: another key signed, or lines were exchanged"
    assert verify(folder, [*forged[:-1], genuine[-1]]).findings == [told]
    head = HashChain()
    for line in forged[:-1]:
        parts = split_line(line)
        assert parts is not None
        head.add_body(parts.body)
    assert verify(folder, [*forged[:-1], sign(head.head, OTHER)]).findings == [told]
    assert verify(folder, [*forged[:-1], sign(head.head)]).is_sound


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: lines[:-1], "it has no signature: it was cut off"),
        (lambda lines: lines[:-3], "it ends after line 6 without its last line: it was cut off"),
        (lambda _: [], "it ends after line 0 without its last line: it was cut off"),
        (lambda lines: [*lines[:-1], b"{}\n"], "line 9: the signature cannot be read"),
        (lambda lines: [*lines[:-1], b'{"signature": "AAAA"}\n'], "line 9: the signature cannot be read"),
        (lambda lines: [*lines, b"more\n"], "line 10: something stands behind the signature"),
        (lambda lines: [lines[0], b"\xff\xfe\n", *lines[1:]], "line 2: it is no hash with its JSON"),
        (lambda _: [b"PK\x03\x04 something else"], "line 1: it is no evidence file of Hopwatch"),
        (lambda lines: lines[1:], "line 1: it is no header of hopwatch-evidence-1, the format is None"),
        (
            lambda lines: [lines[0].replace(b"evidence-1", b"evidence-9"), *lines[1:]],
            "line 1: it is no header of hopwatch-evidence-1, the format is 'hopwatch-evidence-9'",
        ),
        (lambda _: [HashChain().add_body(b"[1").encode() + b" [1\n"], "line 1: its JSON cannot be read"),
        (lambda _: [b"0" * 64 + b" {}\n"], "line 1: the line of kind None was changed"),
        (lambda _: [b"0" * 64 + b" [" + b"[" * 100_000], "line 1: its JSON was changed"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, change: Any, told: str) -> None:  # noqa: ANN401 - a function
    """In the words of whoever holds the file."""
    assert any(told in one for one in verify(folder, change(build_file())).findings)


def test_findings_are_bounded(folder: Path) -> None:
    """A file whose lines are all wrong is told of with the first of them."""
    lines = build_file(windows=200)
    spoilt = [line.replace(b'"W', b'"V') for line in lines]
    found = verify(folder, spoilt).findings
    assert found[-1] == f"more than {MAX_FINDINGS} findings: the others are not listed"
    assert len(found) == MAX_FINDINGS + 1


def test_files_follow_each_other(folder: Path) -> None:
    """By the last hash of the one before, and the end of its range."""
    first = verify(folder, build_file())
    second = verify(folder, build_file(previous=first.head, span=("B", "C")))
    verify_succession(second, first)
    assert second.is_sound
    stranger = verify(folder, build_file(previous="0" * 64, span=("B", "C")))
    verify_succession(stranger, first)
    assert stranger.findings == [
        "it does not follow the file before: its header names another hash as the previous one"
    ]
    apart = verify(folder, build_file(previous=first.head, span=("D", "E")))
    verify_succession(apart, first)
    assert apart.findings == ["the file before ends at B, this one begins at D"]
    cut = verify(folder, build_file()[:-1])
    verify_succession(second, cut)
    assert second.findings == ["the file before: it has no signature: it was cut off"]


def test_a_cut_file_has_no_last_hash(folder: Path) -> None:
    """Nothing may follow it."""
    file = folder / "cut"
    file.write_bytes(b"".join(build_file()[:-1]))
    assert read_head(file) is None


def test_a_file_that_is_not_there_is_an_error(folder: Path) -> None:
    """With its name."""
    with pytest.raises(ConfigurationError, match="nowhere cannot be read: No such file or directory"):
        verify_file(folder / "nowhere", KEY.public_key())


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())))
def test_equal_values_are_equal_bytes(value: dict[str, Any]) -> None:
    """In whatever order they came; half a pair of surrogates is an escape, which is read as it was."""
    body = encode_canonical(value)
    assert body == encode_canonical(dict(reversed(value.items())))
    assert json.loads(body) == value
    assert b"\n" not in body


def test_half_a_pair_of_surrogates_is_kept() -> None:
    """As JSON writes it."""
    assert json.loads(encode_canonical({"id": "\ud83d"})) == {"id": "\ud83d"}
