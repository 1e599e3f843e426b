"""Tests of ``[deliver.NAME]``: what is right, and what is said of what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.monitor.errors import SettingsError
from hopwatch.monitor.settings import load

STREAM: Final = '[streams.orders]\npath = "router -> deliver"\n'
DELIVERY: Final = f"""{STREAM}[deliver.billing]
stream = "orders"
from = "kafka://a:9092/orders"
url = "https://billing.example/events"
"""
KEY: Final = "whsec_" + "QUJD" * 8


def settings(tmp_path: Path, text: str, **environ: str) -> Any:  # noqa: ANN401 - the settings
    """Return what a file and variables make of them."""
    path = tmp_path / "hopwatch.toml"
    path.write_text(text)
    return load(path, flags={}, environ=environ)


def test_a_delivery_needs_a_stream_a_topic_and_a_url(tmp_path: Path) -> None:
    """Everything else has a default."""
    (found,) = settings(tmp_path, DELIVERY).deliver.values()
    assert (found.node, found.batch, found.parallel, found.tries, found.order) == ("deliver", 100, 16, 3, "none")
    assert found.retry_us == (30_000_000, 300_000_000, 3_600_000_000)
    assert found.rejected_url() == "kafka://a:9092/orders.rejected"
    assert found.group_name("billing") == "hopwatch-deliver-billing"


def test_what_is_said_goes_before_the_defaults(tmp_path: Path) -> None:
    """Spans in their units, headers and secrets hidden where the settings are printed."""
    said = f"""{DELIVERY}group = "g"
rejected = "kafka://a:9092/refused"
linger = "1s"
timeout = "500ms"
retry = ["2s", "1m"]
recoverable = [408, 425]
secret = "{KEY}"
headers = {{ X-Team = "crimson" }}
"""
    found = settings(tmp_path, said).deliver["billing"]
    assert (found.linger_us, found.timeout_us, found.retry_us) == (1_000_000, 500_000, (2_000_000, 60_000_000))
    assert (found.recoverable, found.group_name("x"), found.place.topic) == ((408, 425), "g", "orders")
    assert found.rejected_url() == "kafka://a:9092/refused"
    assert found.read_secret("secret") == KEY
    assert KEY not in repr(found)
    assert "crimson" not in repr(found)


def test_a_secret_stands_in_the_environment_or_in_a_file(tmp_path: Path) -> None:
    """A variable goes before both forms in the file; the path of a file is relative to the configuration."""
    (tmp_path / "key").write_text(f"{KEY}\n")
    said = DELIVERY.replace("deliver.billing", "deliver.bill-ing") + 'secret_file = "key"\n'
    assert settings(tmp_path, said).deliver["bill-ing"].read_secret("secret") == KEY
    other = "whsec_" + "REVG" * 8
    found = settings(tmp_path, said, HOPWATCH_DELIVER__BILL_ING__SECRET=other).deliver["bill-ing"]
    assert found.read_secret("secret") == other


def more(text: str) -> str:
    """Return a file whose delivery says more."""
    return f"{DELIVERY}{text}\n"


WRONG: Final = {
    "no stream": (
        DELIVERY.replace('stream = "orders"', 'stream = "order"'),
        "hopwatch.toml:4: deliver.billing.stream: there is no [streams.order]; did you mean 'orders'?",
    ),
    "node": (
        more('node = "sink"'),
        "hopwatch.toml:7: deliver.billing.node: the path of orders has no node 'sink': let it end with \"… -> sink\"",
    ),
    "node name": (more('node = "a b"'), "a node's name is 1 to 128 of the characters A-Za-z0-9._-, got 'a b'"),
    "from": (
        DELIVERY.replace("kafka://a:9092/orders", "spool:x"),
        "deliver.billing.from: messages are in a topic, \"kafka://HOST:PORT/TOPIC\"; got 'spool:x'",
    ),
    "no topic": (
        DELIVERY.replace("kafka://a:9092/orders", "kafka://a:9092"),
        "messages are in a topic of their own, \"kafka://HOST:PORT/TOPIC\"; 'kafka://a:9092' names none",
    ),
    "url": (
        DELIVERY.replace("https://billing.example", "ftp://billing.example"),
        'deliver.billing.url: this is a URL such as "https://host.example/path", without user, password or blanks',
    ),
    "batch bytes": (
        more("batch_bytes = 1073741825"),
        "deliver.billing.batch_bytes: batch_bytes is at most 1,073,741,824, got 1,073,741,825",
    ),
    "max age": (more('max_age = "366d"'), "deliver.billing.max_age: max_age is at most 365d"),
    "long header": (
        more(f'headers = {{ X-A = "{"a" * 8_001}" }}'),
        "deliver.billing.headers: the header X-A has at most 8,000 characters",
    ),
    "header of the signature": (
        more('headers = { Webhook-Id = "a" }'),
        "deliver.billing.headers: the header Webhook-Id is one of the signature, which secret makes",
    ),
    "batch": (more("batch = 1001"), "deliver.billing.batch: batch is at most 1,000, got 1,001"),
    "parallel": (more("parallel = 2000"), "parallel is at most 1,024, got 2,000"),
    "tries": (more("tries = 101"), "tries is at most 100, got 101"),
    "timeout": (more('timeout = "6m"'), "timeout is at most 5m: a receiver that hangs holds messages as long"),
    "linger": (more('linger = "61s"'), "linger is at most 1m: messages wait as long for a batch to fill"),
    "no tiers": (more("retry = []"), "retry lists 1 to 8 waits, got 0: each is a topic"),
    "short tier": (more('retry = ["500ms"]'), "a wait of retry is from 1s to 7d: shorter ones are those between tries"),
    "tiers upside down": (
        more('retry = ["5m", "30s"]'),
        'retry lists waits from the shortest to the longest, each once, such as ["30s", "5m", "1h"]',
    ),
    "recoverable": (
        more("recoverable = [429, 503]"),
        "recoverable lists statuses from 400 to 499 but 413, after which a batch is split, got 503: of 5xx all are",
    ),
    "header": (
        more('headers = { Host = "x" }'),
        "a header is a name such as X-Team, and none that Hopwatch sets itself; got 'Host'",
    ),
    "no key": (
        more('secret = "' + "x" * 40 + '"'),
        "a signing secret is whsec_ and the Base64 of 24 to 64 bytes, this one has no whsec_: make one by",
    ),
    "no Base64": (more('secret = "whsec_####"'), "of 24 to 64 bytes, this one is no Base64: make one by"),
    "short key": (
        more('secret = "whsec_QUJD"'),
        "of 24 to 64 bytes, this one has 3: make one by: echo whsec_$(openssl",
    ),
    "certificate alone": (
        more(f'certificate_file = "{__file__}"'),
        "certificate_file and key_file go together: name both or neither",
    ),
    "certificate": (
        more(f'certificate_file = "{__file__}"\nkey_file = "{__file__}"'),
        "certificate_file and key_file are PEM, and the key is that certificate's, without a password",
    ),
    "no file": (more('key_file = "/nowhere"'), "the file /nowhere cannot be read: No such file or directory"),
    "value": (more('body = "value"'), 'body = "value" sends one message a request: say batch = 1, got 100'),
    "the transport itself": (
        f'[transport]\nurl = "kafka://a:9092/orders"\n{DELIVERY}',
        "messages are in a topic of their own, got that of the probes' records, [transport] url",
    ),
    "rejected into itself": (
        more('rejected = "kafka://a:9092/orders"'),
        "what the receiver rejects goes to a topic of its own, got the one that from names",
    ),
    "two clusters": (
        more('rejected = "kafka://b:9092/x"'),
        "from is at a:9092 and rejected at b:9092: a transaction lies within one cluster, name the same",
    ),
    "long name": (
        DELIVERY.replace("kafka://a:9092/orders", "kafka://a:9092/" + "x" * 230),
        "characters: take a shorter name",
    ),
    "one group twice": (
        more('group = "g"') + DELIVERY.removeprefix(STREAM).replace("billing]", "other]") + 'group = "g"\n',
        "[deliver.billing] reads the same topic as the same group, and they would share its messages: name another",
    ),
    "one node twice": (
        DELIVERY + DELIVERY.removeprefix(STREAM).replace("billing]", "other]"),
        "[deliver.billing] delivers the same topic at the same node, and would hide what this one loses: name another",
    ),
    "name": (
        DELIVERY.replace("[deliver.billing]", '[deliver."a b"]'),
        "a delivery's name is 1 to 64 of the characters a-z0-9_-, got 'a b'",
    ),
    "key": (more("bach = 1"), "deliver.billing.bach: there is no such key; did you mean 'batch'?"),
    "missing": (f'{STREAM}[deliver.billing]\nstream = "orders"\n', "deliver.billing.from: this is required"),
    "no table": (f'{STREAM}[deliver]\nbilling = "{KEY}"\n', "deliver.billing: this is a table, got ***"),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told(text: str, words: str, tmp_path: Path) -> None:
    """With its place, what was got, and what to do; a secret is not shown."""
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, text)
    assert words in str(caught.value)
    assert KEY not in str(caught.value)
