"""Tests of ``[gate]``: what is right, and what is said of what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.cli import gate_builder
from hopwatch.gate.rules import Action, Enumeration, Freshness, NumberRange, Pattern, Required, Uniqueness
from hopwatch.monitor.errors import SettingsError
from hopwatch.monitor.settings import load

STREAM: Final = '[streams.orders]\npath = "gate -> sink"\n'
ENTRANCE: Final = f'{STREAM}[gate.streams.orders]\nto = "spool:./events/orders"\n'
HASH: Final = "sha256:" + "0" * 64


def settings(tmp_path: Path, text: str, **environ: str) -> Any:  # noqa: ANN401 - the settings
    """Return what a file and variables make of them."""
    path = tmp_path / "hopwatch.toml"
    path.write_text(text)
    return load(path, flags={}, environ=environ)


def test_without_a_word_there_is_no_entrance(tmp_path: Path) -> None:
    """The gate is the registry alone, and anybody may ask it."""
    found = settings(tmp_path, "").gate
    assert (found.streams, found.rules, found.producers, found.tls) == ({}, (), {}, None)


@pytest.mark.parametrize(
    ("to", "rejected"),
    [
        ("kafka://a:9092,b:9092/orders.v1", "kafka://a:9092,b:9092/orders.rejected"),
        ("spool:/var/events", "spool:/var/orders.rejected"),
        ("spool:/events", "spool:/orders.rejected"),
    ],
)
def test_what_is_rejected_goes_beside_the_others(tmp_path: Path, to: str, rejected: str) -> None:
    """Named after the stream, if nothing else is said."""
    found = settings(tmp_path, f'{STREAM}[gate.streams.orders]\nto = "{to}"\n').gate.streams["orders"]
    assert (found.to, found.rejected_url("orders"), found.node) == (to, rejected, "gate")
    said = f'{STREAM}[gate.streams.orders]\nto = "{to}"\nrejected = "spool:/elsewhere"\n'
    assert settings(tmp_path, said).gate.streams["orders"].rejected_url("orders") == "spool:/elsewhere"


def test_relative_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """Of spools and of certificates."""
    tls = '[gate.tls]\ncertificate = "cert.pem"\nkey = "/etc/key.pem"\n'
    found = settings(tmp_path, ENTRANCE + tls).gate
    assert found.streams["orders"].to == f"spool:{tmp_path}/events/orders"
    assert (found.tls.certificate, found.tls.key, found.tls.client_ca) == (
        str(tmp_path / "cert.pem"),
        "/etc/key.pem",
        "",
    )


RULES: Final = f"""{ENTRANCE}
[[gate.rules]]
subject = "orders"
kind = "required"
field = "customer.name"
[[gate.rules]]
subject = "orders"
kind = "range"
field = "lines[].price"
min = 0
max = 9.5
action = "quarantine"
[[gate.rules]]
subject = "orders"
kind = "pattern"
field = "currency"
pattern = "[A-Z]{{3}}"
action = "note"
name = "currency code"
[[gate.rules]]
subject = "orders"
kind = "enumeration"
field = "country"
values = ["DE", "FR"]
[[gate.rules]]
subject = "orders"
kind = "freshness"
within = "5m"
[[gate.rules]]
subject = "orders"
kind = "uniqueness"
field = "order"
within = "1h"
"""


def test_rules_become_what_they_say(tmp_path: Path) -> None:
    """In their order; one without a name is called by its kind and its field."""
    terms = gate_builder.build_entrance(settings(tmp_path, RULES), "orders").policy
    assert [(rule.name, type(rule.check), rule.action) for rule in terms.rules] == [
        ("required customer.name", Required, Action.REJECT),
        ("range lines[].price", NumberRange, Action.QUARANTINE),
        ("currency code", Pattern, Action.NOTE),
        ("enumeration country", Enumeration, Action.REJECT),
        ("freshness", Freshness, Action.REJECT),
        ("uniqueness order", Uniqueness, Action.REJECT),
    ]
    assert terms.max_age_us == 86_400_000_000


def test_producers_become_what_they_say(tmp_path: Path) -> None:
    """Their tokens as hashes; a variable may hold one."""
    said = f'{ENTRANCE}[gate.producers.shop]\ntokens = ["{HASH}"]\nstreams = ["orders"]\nevents_per_second = 5\n'
    producer = gate_builder.build_producer(settings(tmp_path, said), "shop")
    assert (producer.token_hashes, producer.streams) == ((bytes(32),), frozenset({"orders"}))
    assert (producer.events_per_second, producer.bytes_per_second) == (5, None)


def test_the_subjects_of_his_streams_are_a_producers(tmp_path: Path) -> None:
    """And those that are named beside them."""
    said = f'{ENTRANCE}subject = "com.orders"\n[gate.producers.shop]\ntokens = ["{HASH}"]\nstreams = ["orders"]\n'
    for more, subjects in (("", {"com.orders"}), ('subjects = ["x"]', {"com.orders", "x"})):
        assert gate_builder.build_producer(settings(tmp_path, said + more), "shop").subjects == subjects


def rule(text: str) -> str:
    """Return a file with one rule."""
    return f'{ENTRANCE}[[gate.rules]]\nsubject = "orders"\n{text}\n'


def producer(text: str) -> str:
    """Return a file with one producer."""
    return f"{ENTRANCE}[gate.producers.shop]\n{text}\n"


THROTTLE: Final = '[gate.streams.orders.throttle]\ngroup = "billing"\n'
WRONG: Final = {
    "throttle of a spool": (
        f'{ENTRANCE}{THROTTLE}target = "5s"\n',
        'a throttle looks at a topic, and events go to a spool: name it, topic = "kafka://HOST:PORT/TOPIC"',
    ),
    "topic of a throttle": (
        f'{ENTRANCE}{THROTTLE}target = "5s"\ntopic = "spool:./x"\n',
        'a consumer group reads a topic, "kafka://HOST:PORT/TOPIC"; got \'spool:',
    ),
    "target of a throttle": (
        f'{ENTRANCE}{THROTTLE}target = "1999ms"\ntopic = "kafka://h:1/t"\n',
        "a throttle's target is at least 2s, got 1999ms",
    ),
    "nobody": (
        f"{ENTRANCE}[gate.producers]\n",
        "gate.producers: it names no producer, and without it anyone may send: name a producer, or leave the table out",
    ),
    "no stream": (
        '[gate.streams.orders]\nto = "spool:./x"\n',
        "there is no [streams.orders], and the monitor would not know its messages: declare its path",
    ),
    "node": (
        f'{STREAM}[gate.streams.orders]\nto = "spool:./x"\nnode = "door"\n',
        "the path of orders has no node 'door': let it begin with \"door -> …\"",
    ),
    "node name": (
        f'{STREAM}[gate.streams.orders]\nto = "spool:./x"\nnode = "a b"\n',
        "a node's name is 1 to 128 of the characters A-Za-z0-9._-, got 'a b'",
    ),
    "to": (
        f'{STREAM}[gate.streams.orders]\nto = "file:x"\n',
        'events go to a topic, "kafka://HOST:PORT/TOPIC", or to a spool, "spool:FOLDER"; got \'file:x\'',
    ),
    "no topic": (
        f'{STREAM}[gate.streams.orders]\nto = "kafka://a:9092"\n',
        "events go to a topic of their own, \"kafka://HOST:PORT/TOPIC\"; 'kafka://a:9092' names none",
    ),
    "registrations": (
        f'{ENTRANCE}[gate.registry]\nchanges_topic = "spool:x"\n',
        "registrations go to a topic, \"kafka://HOST:PORT/TOPIC\"; got 'spool:x'",
    ),
    "field": (
        rule('kind = "required"\nfield = "a..b"'),
        "a field is named such as price, customer.name or lines[].price, got 'a..b'",
    ),
    "range": (rule('kind = "range"\nfield = "a"'), "a range has min, max or both"),
    "upside down": (rule('kind = "range"\nfield = "a"\nmin = 2\nmax = 1'), "min is at most max, got 2 and 1"),
    "pattern": (
        rule('kind = "pattern"\nfield = "a"\npattern = "(?<=a)b"'),
        "a pattern is one of Rust's regex, which has no look-around; got '(?<=a)b'",
    ),
    "subject": (
        f'{ENTRANCE}[[gate.rules]]\nsubject = "order"\nkind = "required"\nfield = "a"\n',
        "no stream of the gate has the subject 'order'; did you mean 'orders'?",
    ),
    "no tokens": (
        producer("tokens = []"),
        "this is a list of one or 2 hashes of tokens, which 'hopwatch gate token' writes",
    ),
    "three tokens": (
        producer(f'tokens = ["{HASH}", "{HASH}", "{HASH}"]'),
        "this is a list of one or 2 hashes of tokens, which 'hopwatch gate token' writes",
    ),
    "the transport itself": (
        f'[transport]\nurl = "spool:/x"\n{STREAM}[gate.streams.orders]\nto = "spool:/x"\n',
        "events go to a place of their own, got that of the probes' records, [transport] url",
    ),
    "one place for both": (
        f'{STREAM}[gate.streams.orders]\nto = "spool:/x"\nrejected = "spool:/x"\n',
        "what may not enter goes to a place of its own, got the one that to names",
    ),
    "nan": (rule('kind = "range"\nfield = "a"\nmin = nan'), "min and max are numbers, not nan or inf"),
    "one token of two": (
        producer(f'tokens = ["{HASH}"]\n[gate.producers.other]\ntokens = ["{HASH}"]'),
        "a token belongs to one producer, and is named once: make another with 'hopwatch gate token'",
    ),
    "stream of a producer": (
        producer(f'tokens = ["{HASH}"]\nstreams = ["order"]'),
        "there is no entrance to a stream 'order'; did you mean 'orders'?",
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told(text: str, words: str, tmp_path: Path) -> None:
    """With what was got, and what to do."""
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, text)
    assert words in str(caught.value)


def test_a_token_that_stands_where_its_hash_should_is_not_shown(tmp_path: Path) -> None:
    """A token in the place of its hash is an error that does not show it."""
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, producer('tokens = ["my-very-own-token"]'))
    told = str(caught.value)
    assert 'a token stands here as its hash, "sha256:…", which "hopwatch gate token" writes; got something else' in told
    assert "my-very-own-token" not in told


KEYS: Final = {
    "gate": (f"{ENTRANCE}[gate]\nproducer = 1\n", "gate.producer: there is no such key; did you mean 'producers'?"),
    "entrance": (f"{ENTRANCE}too = 1\n", "gate.streams.orders.too: there is no such key; did you mean 'to'?"),
    "rule": (
        rule('kind = "range"\nfield = "a"\nmax = 1\nmx = 2'),
        "gate.rules.mx: there is no such key; did you mean 'max'?",
    ),
    "producer": (
        producer(f'token = ["{HASH}"]'),
        "gate.producers.shop.token: there is no such key; did you mean 'tokens'?",
    ),
    "tls": (f'{ENTRANCE}[gate.tls]\ncertificate = "a"\nkey = "b"\nca = "c"\n', "gate.tls.ca: there is no such key;"),
    "missing": (f'{STREAM}[gate.streams.orders]\nnode = "gate"\n', "gate.streams.orders.to: this is required"),
    "kind": (rule('kind = "rage"'), "gate.rules: there is no such kind of rule as 'rage'; did you mean 'range'?"),
    "no kind": (
        rule('field = "a"'),
        "gate.rules: a rule has a kind, one of required, range, pattern, enumeration, freshness,",
    ),
}


@pytest.mark.parametrize(("text", "words"), KEYS.values(), ids=KEYS)
def test_a_key_that_is_none_is_told_with_the_nearest(text: str, words: str, tmp_path: Path) -> None:
    """In each of the tables."""
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, text)
    assert words in str(caught.value)
