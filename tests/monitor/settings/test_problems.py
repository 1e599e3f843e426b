"""Tests of what a person reads when settings are wrong: place, key, what was got, what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopwatch.monitor.errors import SettingsError
from hopwatch.monitor.settings import ALERTS, load, load_with_streams
from hopwatch.monitor.settings.alerting import AlertsSettings

PATH = '[streams.s]\npath = "a -> b"\n'
MINUTE = "valid_from is a whole minute such as 2026-11-21T06:40:00Z"
LOST_IDS = "max_lost_ids is a whole number from 10,000 to 1,000,000"
NAME = "is 1 to 128 of the characters A-Za-z0-9._-, got"
DURATION = 'a duration is a whole number with ms, s, m, h or d behind it, in quotes: "500ms", "150s", "10m", "1h", "7d"'
KAFKA = 'a Kafka URL is "kafka://HOST:PORT/TOPIC", such as "kafka://broker:9092/hopwatch.observations"'
SPOOL = (
    'a transport is a spool, "spool:FOLDER" such as "spool:./var/spool", '
    'or a Kafka topic, "kafka://HOST:PORT/TOPIC"; got'
)
STORE = (
    'a store is a SQLite file, "sqlite:///FILE", such as "sqlite:///./var/hopwatch.db" '
    "(four slashes before an absolute path), or a PostgreSQL database, "
    '"postgresql+psycopg://USER@HOST:PORT/DATABASE"; got'
)
STREAM_KEYS = (
    "path, stamps, transit, settle, deadline, amend_for, max_age, loss_alarm, shards, ignore_nodes, order, "
    "max_lost_ids, topics, groups, valid_from, labels"
)


def _told(folder: Path, text: str, *, flags: dict[str, object] | None = None, **environ: str) -> list[str]:
    """Return what is told of a configuration, the folder cut off."""
    file = folder / "h.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load(file, flags=flags or {}, environ=environ)
    return str(refused.value).replace(f"{folder}/", "").split("\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # Keys that there are not, each with the nearest that there is.
        (
            '[store]\nurl = "postgresql+psycopg://u@h/d?sslmode=bogus"',
            (
                "2: store.url: sslmode in the URL of a store is one of disable, allow, prefer, require, verify-ca, "
                "verify-full; got 'bogus'"
            ),
        ),
        (
            '[store]\nurl = "postgresql+psycopg://u@h/d?connect_timeout=x"',
            "2: store.url: connect_timeout in the URL of a store is a whole number, got 'x'",
        ),
        (
            '[store]\nurl = "postgresql+psycopg://u@h/d?sslmod=require"',
            (
                "2: store.url: behind ? the URL of a store has options of PostgreSQL's client; "
                'got invalid connection option "sslmod"'
            ),
        ),
        (
            '[stroe]\nurl = "x"',
            (
                "1: stroe: there is no such key; did you mean 'store'? "
                "Known here: transport, store, monitor, streams, alerts, metrics, dashboard, gate, deliver, api, "
                "completeness, results, otlp, selftest"
            ),
        ),
        (
            '[streams.s]\npath = "a -> b"\nlabels = { stream = "x" }',
            (
                "3: streams.s.labels.stream: a label is 1 to 64 of the characters a-z0-9_ and none of alertname, edge, "
                "event, installation, key, kind, node, rule, severity, stream, word; got 'stream'"
            ),
        ),
        (
            '[streams.s]\npath = "a -> b"\nlabels = { team = "a\\nb" }',
            (
                "3: streams.s.labels.team: the value of a label is a word of 1 to 100 characters, without spaces, "
                "got 'a\\nb'"
            ),
        ),
        (
            '[streams.s]\npath = "a -> b"\nlabels = { team = " " }',
            "3: streams.s.labels.team: the value of a label is a word of 1 to 100 characters, without spaces, got ' '",
        ),
        (
            '[store]\n\nuri = "x"',
            "3: store.uri: there is no such key; did you mean 'url'? Known here: url, retry_for, digests_for",
        ),
        (
            '[transport.kafka]\nsasl_mechansim = "PLAIN"',
            (
                "2: transport.kafka.sasl_mechansim: there is no such key; did you mean 'sasl_mechanism'? Known here: "
                "security_protocol, sasl_mechanism, sasl_username, sasl_password, sasl_password_file, ssl_ca_file, "
                "ssl_certificate_file, ssl_key_file, ssl_key_password, ssl_key_password_file"
            ),
        ),
        (
            PATH + 'tansit = "1s"',
            f"3: streams.s.tansit: there is no such key; did you mean 'transit'? Known here: {STREAM_KEYS}",
        ),
        (
            PATH + "transit_us = 1",
            f"3: streams.s.transit_us: there is no such key; did you mean 'transit'? Known here: {STREAM_KEYS}",
        ),
        (
            '[monitor]\n"trig er" = "1s"',
            (
                "2: monitor.\"trig er\": there is no such key; did you mean 'trigger'? "
                "Known here: workdir, master, tasks, spark, trigger, pulse"
            ),
        ),
        # Places.
        ('transport.url = "amqp://h:9092/t"', f"1: transport.url: {SPOOL} 'amqp://h:9092/t'"),
        (
            'transport.url = "kafka://h/t"',
            f"1: transport.url: {KAFKA}; got 'h' for a broker",
        ),
        (
            '[transport]\nurl = "kafka://h:9092/t"\nrecords_per_trigger = 0',
            "3: transport.records_per_trigger: this is a whole number over 0, got 0",
        ),
        (
            '[transport]\nurl = "kafka://h:9092/t"\n[transport.kafka]\nsecurity_protocol = "TLS"',
            "3: transport.kafka: security_protocol is one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL; got 'TLS'",
        ),
        (
            '[transport]\nurl = "kafka://h:9092/t"\n[transport.kafka]\nsasl_password_file = "/nowhere/secret"',
            "4: transport.kafka.sasl_password_file: the file /nowhere/secret cannot be read: No such file or directory",
        ),
        ('[transport]\nurl = "spool:"', f"2: transport.url: {SPOOL} 'spool:'"),
        ('[store]\nurl = "postgresql+psycopg://h"', f"2: store.url: {STORE} 'postgresql+psycopg://h'"),
        ('[store]\nurl = "postgresql+psycopg://h:x/d"', f"2: store.url: {STORE} 'postgresql+psycopg://h:x/d'"),
        ('[store]\nurl = "postgresql:u:secret@h/d"', f"2: store.url: {STORE} 'postgresql:u:***@h/d'"),
        ('[store]\nretry_for = "0s"', "2: store.retry_for: this duration is longer than zero, got '0s'"),
        ('[store]\nurl = "postgres://u:s@w@h/d"', f"2: store.url: {STORE} 'postgres://u:***@h/d'"),
        ('[store]\nurl = "mysql://h/d?x=1&password=s"', f"2: store.url: {STORE} 'mysql://h/d?x=1&password=***"),
        ('store = "postgresql://u:secret@h/d"', "1: store: this is a table, got 'postgresql://u:***@h/d'"),
        ('[store]\nurl = "sqlite:///:memory:"', f"2: store.url: {STORE} 'sqlite:///:memory:'"),
        ("[store]\nurl = 5", f"2: store.url: {STORE} 5"),
        ("[monitor]\nworkdir = 5", '2: monitor.workdir: a folder is a text such as "./var/monitor", got 5'),
        ("store = 5", "1: store: this is a table, got 5"),
        ("streams = 5", "1: streams: this is a table, got 5"),
        ("[streams]\ns = 5", "2: streams.s: this is a table, got 5"),
        # Numbers.
        (PATH + "transit = 150", f"3: streams.s.transit: {DURATION}; got 150"),
        (PATH + 'settle = "2 minutes"', f"3: streams.s.settle: {DURATION}; got '2 minutes'"),
        ('[monitor]\npulse = "0s"', "2: monitor.pulse: this duration is longer than zero, got '0s'"),
        (PATH + "shards = 0", "3: streams.s.shards: shards is a whole number from 1 to 256, got 0"),
        (PATH + "shards = 257", "3: streams.s.shards: shards is a whole number from 1 to 256, got 257"),
        (
            PATH + "valid_from = '2026-11-27T12:05:01Z'",
            f"3: streams.s.valid_from: {MINUTE}, got '2026-11-27T12:05:01Z'",
        ),
        (PATH + "valid_from = 'soon'", f"3: streams.s.valid_from: {MINUTE}, got 'soon'"),
        (PATH + "valid_from = 5", f"3: streams.s.valid_from: {MINUTE}, got 5"),
        (PATH + "max_lost_ids = 9_999", f"3: streams.s.max_lost_ids: {LOST_IDS}, got 9999"),
        (PATH + "max_lost_ids = 1_000_001", f"3: streams.s.max_lost_ids: {LOST_IDS}, got 1000001"),
        (PATH + "max_lost_ids = 'all'", f"3: streams.s.max_lost_ids: {LOST_IDS}, got 'all'"),
        (PATH + "shards = true", "3: streams.s.shards: shards is a whole number from 1 to 256, got True"),
        (PATH + "loss_alarm = 1.01", "3: streams.s.loss_alarm: a ratio is a number from 0 to 1, got 1.01"),
        (PATH + "loss_alarm = -1", "3: streams.s.loss_alarm: a ratio is a number from 0 to 1, got -1"),
        (PATH + "loss_alarm = nan", "3: streams.s.loss_alarm: a ratio is a number from 0 to 1, got nan"),
        (PATH + 'loss_alarm = "0.1"', "3: streams.s.loss_alarm: a ratio is a number from 0 to 1, got '0.1'"),
        # Streams and their names.
        ("[streams.s]", '1: streams.s.path: a stream has a path, such as path = "a -> b -> c"'),
        # Tables that lack a key.
        ("[api.readers.r]", "1: api.readers.r.tokens: this is required"),
        ("[completeness.c]", "1: completeness.c.stream: this is required"),
        ('[streams."a b"]\npath = "a"', f"1: streams.\"a b\": a stream's name {NAME} 'a b'"),
        (
            '[streams._hopwatch]\npath = "a"',
            "1: streams._hopwatch: the stream name '_hopwatch' is reserved for the monitor's own pulse: choose another",
        ),
        (
            '[streams.hopwatch-selftest]\npath = "a"',
            (
                "1: streams.hopwatch-selftest: the stream name 'hopwatch-selftest' is reserved for the self-test: "
                "choose another"
            ),
        ),
        (
            "[selftest]\nmessages_per_minute = 59",
            "2: selftest.messages_per_minute: messages_per_minute is a whole number from 60 to 6,000, got 59",
        ),
        # Paths; each bad chain of a list has its own line.
        (
            "[streams.s]\npath = 5",
            '2: streams.s.path: a path is a text such as "a -> b -> c", or a list of such texts; got 5',
        ),
        (
            "[streams.s]\npath = []",
            '2: streams.s.path: a path is a text such as "a -> b -> c", or a list of such texts; got []',
        ),
        (
            '[streams.s]\npath = "a -> b -> a"',
            "2: streams.s.path: a path leads on and never back, got the cycle a -> b -> a",
        ),
        (
            '[streams.s]\npath = [\n"a -> b",\n"b -> a"]',
            "2: streams.s.path: a path leads on and never back, got the cycle a -> b -> a",
        ),
        (
            '[streams.s]\npath = [\n"a -> b",\n"b -> c | c"]',
            "4: streams.s.path: a node stands once in a hop, got 'c' twice in 'c | c'",
        ),
        (
            '[streams.s]\npath = "a -> b | c & d"',
            "2: streams.s.path: a hop joins its nodes by | or by &, got both in 'b | c & d'",
        ),
        (
            '[streams.s]\npath = ["a -> b", "a -> b | c"]',
            "2: streams.s.path: a -> b is expected of every message in 'a -> b' and of some in 'a -> b | c': keep one",
        ),
        ('[streams.s]\npath = "a -> [b]"', f"2: streams.s.path: a node {NAME} '[b]' in 'a -> [b]'"),
        # Stamps; each bad node has its own line.
        (
            PATH + '[streams.s.stamps]\nb = "in"\nz = "in"',
            "5: streams.s.stamps.z: stamps names the node 'z', which is not in the path: a, b",
        ),
        (
            PATH + 'stamps = { a = "left" }',
            "3: streams.s.stamps.a: stamps of 'a' is one of both, in, out, count, got 'left'",
        ),
        (PATH + "stamps = { a = 1 }", "3: streams.s.stamps.a: this is a text, got 1"),
        (PATH + 'stamps = "in"', "3: streams.s.stamps: this is a table, got 'in'"),
        (
            PATH + 'transit = "20s"\ndeadline = { a = "1s", b = "21s" }',
            (
                "4: streams.s.deadline: a deadline is at most transit, which is 20s, got 21s: "
                "what is missing for longer is lost"
            ),
        ),
        (
            PATH + 'deadline = { c = "1s" }',
            "3: streams.s.deadline: deadlines are of nodes of the path that stamp ids, got 'c': name one of a, b",
        ),
        (PATH + 'deadline = "0s"', "3: streams.s.deadline: this duration is longer than zero, got '0s'"),
        (
            PATH + "deadline = 5",
            (
                "3: streams.s.deadline: a duration is a whole number with ms, s, m, h or d behind it, in quotes: "
                '"500ms", "150s", "10m", "1h", "7d"; got 5'
            ),
        ),
    ],
)
def test_what_is_told(tmp_path: Path, text: str, told: str) -> None:
    """One line: file, line, key, and what is allowed against what was got."""
    assert _told(tmp_path, text) == [f"h.toml:{told}"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[store]\nurl = = 1", "2:7: not TOML: Invalid value"),
        ("[store]\n[store]", "2:7: not TOML: Cannot declare ('store',) twice"),
        ("[store]\nurl = [", "2: not TOML: Invalid value"),
        ("a = 1\n\na = 2\n", "3:6: not TOML: Cannot overwrite a value"),
    ],
)
def test_what_is_no_toml_has_line_and_column(tmp_path: Path, text: str, told: str) -> None:
    """The parser's word with file, line and column; at the end of the file there is no column."""
    assert _told(tmp_path, text) == [f"h.toml:{told}"]


def test_what_is_no_text_has_its_line(tmp_path: Path) -> None:
    """A byte that is no UTF-8 is named, with its line."""
    file = tmp_path / "h.toml"
    file.write_bytes(b'[store]\nurl = "\xff"\n')
    with pytest.raises(SettingsError) as refused:
        load(file, flags={}, environ={})
    assert str(refused.value) == f"{file}:2: not TOML: its text is UTF-8, got the byte 0xff"


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    """All problems of all tables, in the order of their lines, those of flags and variables with their names."""
    text = """
[stroe]
[store]
url = "x"
[streams.s]
path = ["a ->", "b -> b"]
shards = 0
[streams.t]
path = "a -> b"
stamps = { y = "in", z = "in" }
"""
    told = _told(
        tmp_path, text, flags={"monitor": {"workdir": ""}}, HOPWATCH_STREAMS__T__SHARDS="none", HOPWATCH_X__Y="1"
    )
    assert [line.split(": ")[:2] for line in told] == [
        ["--workdir", "monitor.workdir"],
        ["environment HOPWATCH_STREAMS__T__SHARDS", "streams.t.shards"],
        ["environment HOPWATCH_X__Y", "x"],
        ["h.toml:2", "stroe"],
        ["h.toml:4", "store.url"],
        ["h.toml:6", "streams.s.path"],
        ["h.toml:6", "streams.s.path"],
        ["h.toml:7", "streams.s.shards"],
        ["h.toml:10", "streams.t.stamps.y"],
        ["h.toml:10", "streams.t.stamps.z"],
    ]


def test_a_stream_of_variables_alone_is_told_by_one_of_them(tmp_path: Path) -> None:
    """The error for a missing path of a stream names a variable that configures it."""
    told = _told(tmp_path, "", HOPWATCH_STREAMS__NEW__SHARDS="2")
    assert told == [
        'environment HOPWATCH_STREAMS__NEW__SHARDS: streams.new.path: a stream has a path, such as path = "a -> b -> c"'
    ]


def test_what_was_got_is_cut_short(tmp_path: Path) -> None:
    """Ten thousand characters of value do not hide what is wrong with them."""
    (told,) = _told(tmp_path, f'{PATH}shards = "{"x" * 10_000}"')
    assert len(told) < 200


def test_what_does_not_fit_is_told_beside_what_is_wrong_by_itself(tmp_path: Path) -> None:
    """Names of streams, nodes, channels, labels and subjects; also in a table that is wrong by another key."""
    text = """
[alerts]
installation = "not one"
[[alerts.rules]]
kind = "loss"
threshold = 7
streams = ["gone"]
labels = { colour = "red" }
[[alerts.rules]]
kind = "no kind"
[alerts.channels.chat]
kind = "slack"
fallback = "pager"
[alerts.channels.post]
kind = "webhook"
url = "https://host.example/x"
streams = ["gone"]
fallback = "chat"
[gate.streams.gone]
to = "spool:./gone"
[gate.streams.good]
to = "nowhere"
node = "y"
[gate.streams.other]
to = "spool:./spool"
[[gate.rules]]
kind = "required"
field = ""
subject = "gone too"
[gate.producers.shop]
tokens = ["x"]
streams = ["gone too"]
[streams.good]
path = "a -> b"
[streams.other]
path = "a ->"
[transport]
url = "spool:./spool"
"""
    assert [":".join(line.split(": ")[:2]).removeprefix("h.toml:") for line in _told(tmp_path, text)] == [
        "3:alerts.installation",
        "6:alerts.rules.threshold",
        "7:alerts.rules.streams",
        "8:alerts.rules.labels.colour",
        "9:alerts.rules",
        "11:alerts.channels.chat.url",
        "17:alerts.channels.post.streams",
        "19:gate.streams.gone",
        "22:gate.streams.good.to",
        "25:gate.streams.other.to",
        "28:gate.rules.field",
        "31:gate.producers.shop.tokens",
        "36:streams.other.path",
    ]


def test_nodes_of_a_path_that_is_wrong_are_not_held_against_anybody(tmp_path: Path) -> None:
    """Nobody knows which they are: the path alone is told."""
    text = (
        '[streams.s]\npath = "a ->"\n[gate.streams.s]\nto = "spool:./x"\n[[alerts.rules]]\nkind = "loss"\nnodes = ["b"]'
    )
    (told,) = _told(tmp_path, text)
    assert told.startswith("h.toml:2: streams.s.path: ")


@pytest.mark.parametrize("labels", ["3", '["team", 3]', '["squad", "Not one"]', '"squad"'])
def test_labels_that_are_wrong_are_not_held_against_any_rule(tmp_path: Path, labels: str) -> None:
    """Nobody knows which they are meant to be: the list alone is told."""
    text = f'{PATH}[alerts]\nlabels = {labels}\n[[alerts.rules]]\nkind = "loss"\nlabels = {{ squad = "x" }}'
    assert {line.split(": ")[1] for line in _told(tmp_path, text)} == {"alerts.labels"}


@pytest.mark.parametrize(
    "text",
    ["alerts = 3", "streams = 3", "gate = [1]", "[alerts]\nrules = 3\nlabels = 3\nchannels = 3", "[gate]\nrules = [3]"],
)
def test_what_is_no_table_is_told_alone(tmp_path: Path, text: str) -> None:
    """A value in the place of a table is one error, whatever the table should hold."""
    assert all("this is a" in line or "valid" in line for line in _told(tmp_path, text))


def test_that_no_stream_is_declared_is_told_beside_what_is_wrong(tmp_path: Path) -> None:
    """Both, to whom needs a stream."""
    file = tmp_path / "h.toml"
    file.write_text('[store]\nurl = "x"')
    with pytest.raises(SettingsError) as refused:
        load_with_streams(file, flags={}, environ={})
    assert [problem.key for problem in refused.value.problems] == ["store.url", "streams"]
    with pytest.raises(SettingsError) as refused:
        load_with_streams(file, flags={}, environ={"HOPWATCH_STREAMS__S__PATH": "a"})
    assert [problem.key for problem in refused.value.problems] == ["store.url"]


def test_a_table_that_is_left_out_may_be_wrong(tmp_path: Path) -> None:
    """In the file and in the environment; what is wrong elsewhere is told."""
    file = tmp_path / "h.toml"
    file.write_text('[alerts]\nenabled = "perhaps"\n[[alerts.rules]]\nkind = "x"')
    environ = {"HOPWATCH_ALERTS__INSTALLATION": "not one"}
    assert load(file, flags={}, environ=environ, without=ALERTS).alerts == AlertsSettings()
    with pytest.raises(SettingsError, match=r"store\.url"):
        load(file, flags={}, environ=environ | {"HOPWATCH_STORE__URL": "x"}, without=ALERTS)


def test_nodes_to_ignore_are_a_list_of_names(tmp_path: Path) -> None:
    """As TOML has lists."""
    file = tmp_path / "h.toml"
    file.write_text(PATH + 'ignore_nodes = ["audit", "trail.log"]')
    assert load(file, flags={}, environ={}).streams["s"].ignore_nodes == ("audit", "trail.log")


def test_a_deadline_is_of_all_nodes_or_of_some(tmp_path: Path) -> None:
    """Of all that stamp ids, in the order of the path; of none without it."""
    file = tmp_path / "h.toml"
    path = '[streams.s]\npath = "a -> n -> b"\nstamps = { n = "count" }\n'
    for text, expected in (
        ("", ()),
        ('deadline = "2s"', (("a", 2_000_000), ("b", 2_000_000))),
        ('deadline = { b = "500ms" }', (("b", 500_000),)),
    ):
        file.write_text(path + text)
        assert load(file, flags={}, environ={}).stream_configs()["s"].deadlines == expected
