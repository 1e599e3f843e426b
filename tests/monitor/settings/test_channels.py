"""Tests of ``[alerts.channels.NAME]``: what a person reads when one is wrong, and where its secrets may stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.cli.main import main
from hopwatch.monitor.errors import SettingsError
from hopwatch.monitor.settings import load
from hopwatch.monitor.settings.alerting import KINDS as RULES
from hopwatch.monitor.settings.channels import KINDS, ChannelTable

EMAIL: Final = 'kind = "email"\nhost = "h"\nfrom = "a@b"\nto = ["c@d"]\n'
STREAM: Final = '[streams.s]\npath = "a -> b"\n'
TABLE: Final = STREAM + "[alerts.channels.ops]\n"
SLACK: Final = TABLE + 'kind = "slack"\nurl = "https://slack.example/T0P-5ECRET"\n'
COMMON: Final = "kind, enabled, severities, streams, rules, heartbeats, fallback, timeout, ca_file"
HIDDEN: Final = "T0P-5ECRET"
DELIVERY: Final = '[deliver.billing]\nstream = "s"\nfrom = "kafka://h:1/t"\nurl = "https://h.example/"\nnode = "b"\n'


def told(folder: Path, text: str, **environ: str) -> list[str]:
    """Return what is told of a configuration, the folder cut off; no secret is in it."""
    file = folder / "h.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load(file, flags={}, environ=environ)
    assert HIDDEN not in str(refused.value)
    return str(refused.value).replace(f"{folder}/", "").split("\n")


def made(folder: Path, text: str, name: str = "ops", **environ: str) -> Any:  # noqa: ANN401 - a table of some kind
    """Return a channel of a configuration."""
    file = folder / "h.toml"
    file.write_text(text)
    return load(file, flags={}, environ=environ).alerts.channels[name]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLE + "enabled = true", f"h.toml:3: alerts.channels.ops: a channel has a kind, one of {', '.join(KINDS)}"),
        (
            TABLE + 'kind = "slak"',
            (
                "h.toml:3: alerts.channels.ops: there is no such kind of channel as 'slak'; did you mean 'slack'? "
                f"Known here: {', '.join(KINDS)}"
            ),
        ),
        (
            SLACK + 'timout = "5s"',
            (
                "h.toml:6: alerts.channels.ops.timout: there is no such key; did you mean 'timeout'? "
                f"Known here: {COMMON}, url, url_file, template, template_file"
            ),
        ),
        (
            SLACK + 'rules = ["los"]',
            (
                "h.toml:6: alerts.channels.ops.rules: there is no rule 'los'; did you mean 'loss'? Known here: "
                f"{', '.join(RULES)}"
            ),
        ),
        (
            TABLE + 'kind = "command"\ncommand = ["true"]',
            "h.toml:3: alerts.channels.ops.rules: this is required",
        ),
        (
            TABLE + 'kind = "pause"\nrules = ["loss"]\ndelivery = "biling"\n' + DELIVERY,
            (
                "h.toml:6: alerts.channels.ops.delivery: there is no [deliver.biling]; did you mean 'billing'? "
                "Known here: billing"
            ),
        ),
        (STREAM + '[alerts.channels]\nops = "T0P-5ECRET"', "h.toml:4: alerts.channels.ops: this is a table, got ***"),
        (
            STREAM + '[alerts.channels."A b"]\nkind = "slack"\nurl = "https://x.example/"',
            "h.toml:3: alerts.channels.\"A b\": a channel's name is 1 to 64 of the characters a-z0-9_-, got 'A b'",
        ),
        (
            TABLE + 'kind = "slack"',
            "h.toml:3: alerts.channels.ops.url: this is required: url, or url_file for a file that holds it",
        ),
        (
            TABLE + 'kind = "slack"\nurl = "ftp://T0P-5ECRET"',
            (
                'h.toml:5: alerts.channels.ops.url: this is a URL such as "https://host.example/path", '
                "without user, password or blanks in it"
            ),
        ),
        (
            TABLE + 'kind = "slack"\nurl = 5',
            "h.toml:5: alerts.channels.ops.url: this is a text, got ***",
        ),
        (
            SLACK + 'url_file = "x"',
            "h.toml:6: alerts.channels.ops.url_file: url and url_file both say it: keep one of them",
        ),
        (
            TABLE + 'kind = "pagerduty"\nrouting_key_file = "away"',
            ("h.toml:5: alerts.channels.ops.routing_key_file: the file away cannot be read: No such file or directory"),
        ),
        (
            TABLE + 'kind = "pagerduty"\nrouting_key = "T0P-5ECRET two"',
            "h.toml:5: alerts.channels.ops.routing_key: this is one word of ASCII, without blanks or line ends",
        ),
        (
            SLACK + 'streams = ["t"]',
            "h.toml:6: alerts.channels.ops.streams: there is no stream 't'; did you mean 's'? Known here: s",
        ),
        (
            SLACK + 'severities = ["wake"]',
            "h.toml:6: alerts.channels.ops.severities: this is one of 'page' or 'ticket', got 'wake'",
        ),
        (
            SLACK + 'fallback = "opps"',
            "h.toml:6: alerts.channels.ops.fallback: there is no channel 'opps'; did you mean 'ops'? Known here: ops",
        ),
        (
            SLACK + 'fallback = "ops"',
            (
                "h.toml:6: alerts.channels.ops.fallback: "
                "a channel falls back on another one, and in the end never on itself"
            ),
        ),
        (
            SLACK + 'timeout = "2m"',
            "h.toml:6: alerts.channels.ops.timeout: timeout is at most 60s: other notifications wait as long",
        ),
        (
            SLACK + 'ca_file = "h.toml"',
            (
                "h.toml:6: alerts.channels.ops.ca_file: the file h.toml holds no certificates: "
                "it is PEM, with BEGIN CERTIFICATE in it"
            ),
        ),
        (
            SLACK + 'ca_file = "away"',
            "h.toml:6: alerts.channels.ops.ca_file: the file away cannot be read: No such file or directory",
        ),
        (
            SLACK + 'template = """\nhello\n{{ summary }"""',
            "h.toml:6: alerts.channels.ops.template: line 2 of the template: unexpected '}'",
        ),
        (
            SLACK + 'template = "{{ alerts[0].nod }}"',
            "h.toml:6: alerts.channels.ops.template: the template fails: 'dict object' has no attribute 'nod'",
        ),
        (
            TABLE + 'kind = "alertmanager"',
            "h.toml:3: alerts.channels.ops.urls: this is required",
        ),
        (
            TABLE + 'kind = "alertmanager"\nurls = []',
            "h.toml:5: alerts.channels.ops.urls: this lists 1 to 50, got 0",
        ),
        (
            TABLE + 'kind = "alertmanager"\nurls = ["http://me:T0P-5ECRET@am:9093"]',
            (
                'h.toml:5: alerts.channels.ops.urls: this is a URL such as "https://host.example/path", '
                "without user, password or blanks in it"
            ),
        ),
        (
            TABLE + 'kind = "alertmanager"\nurls = [5]',
            'h.toml:5: alerts.channels.ops.urls: this is a list of URLs, such as ["http://alertmanager:9093"]',
        ),
        (
            TABLE + 'kind = "alertmanager"\nurls = ["http://am"]\nresend = "2h"',
            (
                "h.toml:6: alerts.channels.ops.resend: resend is at most 1h: "
                "Alertmanager takes an alert that it hears no more of for resolved"
            ),
        ),
        (
            TABLE + 'kind = "alertmanager"\nurls = ["http://am"]\nusername = "me"',
            "h.toml:3: alerts.channels.ops: username and password go together, or bearer_token stands alone",
        ),
        (
            TABLE + 'kind = "webhook"\nurl = "https://h.example/"\nsecret = "T0P-5ECRET"',
            (
                "h.toml:6: alerts.channels.ops.secret: a signing secret has at least 16 characters, this one 10: "
                "make one by openssl rand -hex 32"
            ),
        ),
        (
            TABLE + 'kind = "webhook"\nurl = "https://h.example/"\nheaders = { Host = "x" }',
            (
                "h.toml:6: alerts.channels.ops.headers: a header is a name such as X-Team, "
                "and none that Hopwatch sets itself; got 'Host'"
            ),
        ),
        (
            TABLE + 'kind = "webhook"\nurl = "https://h.example/"\nheaders = { X = "T0P-5ECRET\\n" }',
            "h.toml:6: alerts.channels.ops.headers: the header X is one line of ASCII, without blanks around it",
        ),
        (
            TABLE + 'kind = "webhook"\nurl = "https://h.example/"\nheaders = { X = "T0P-5ECRET " }',
            "h.toml:6: alerts.channels.ops.headers: the header X is one line of ASCII, without blanks around it",
        ),
        (
            TABLE + 'kind = "email"\nhost = "h"\nport = 70000\nfrom = "a@b"\nto = ["c@d"]',
            "h.toml:6: alerts.channels.ops.port: a port is a whole number from 1 to 65535, got 70000",
        ),
        (
            TABLE + 'kind = "email"\nhost = "h"\nfrom = "a@b"\nto = ["c d@e"]',
            (
                "h.toml:7: alerts.channels.ops.to: an address is NAME@DOMAIN such as "
                "\"on-call@host.example\", got 'c d@e'"
            ),
        ),
        (
            TABLE + EMAIL + 'password = "T0P-5ECRET"',
            "h.toml:3: alerts.channels.ops: username and password go together",
        ),
        (
            TABLE + EMAIL + 'username = "u"\npassword = "T0P-5ECRET"\ntls = "none"',
            ('h.toml:3: alerts.channels.ops: a password goes through TLS alone: tls is "starttls" or "implicit"'),
        ),
        (
            TABLE + 'kind = "apprise"\nurls = ["json://h", "nosuch://T0P-5ECRET"]',
            (
                "h.toml:5: alerts.channels.ops.urls: Apprise knows no service of number 2 of the urls; "
                "see its list of what they look like"
            ),
        ),
    ],
)
def test_what_is_wrong_is_told(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With line, key, what was got unless it may be a secret, and a suggestion."""
    monkeypatch.chdir(tmp_path)
    assert told(tmp_path, text) == [message]


def test_channels_that_fall_back_in_a_circle_are_all_told(tmp_path: Path) -> None:
    """All channels of a circle of fallbacks are errors, and a channel that leads into it is not."""
    text = STREAM
    for name, after in (("a", "b"), ("b", "c"), ("c", "b")):
        text += f'[alerts.channels.{name}]\nkind = "slack"\nurl = "https://x.example/"\nfallback = "{after}"\n'
    assert [line.split(":")[1:3] for line in told(tmp_path, text)] == [
        ["10", " alerts.channels.b.fallback"],
        ["14", " alerts.channels.c.fallback"],
    ]


def test_a_file_that_is_no_text_or_far_too_long_is_refused(tmp_path: Path) -> None:
    """As a secret, or as a template."""
    key = tmp_path / "key"
    text = TABLE + 'kind = "pagerduty"\nrouting_key_file = "key"'
    key.write_bytes(b"\xff")
    assert told(tmp_path, text)[0].endswith("the file key cannot be read: its text is UTF-8")
    key.write_text("x" * 100_001)
    expected = "the file key is too long: it has 100,001 characters, and 100,000 are enough"
    assert told(tmp_path, text)[0].endswith(expected)


def test_a_secret_stands_in_the_configuration_the_environment_or_a_file(tmp_path: Path) -> None:
    """The environment comes first, in either form; a key of digits alone is a text there too."""
    (tmp_path / "key").write_text("of-the-file\n")
    text = TABLE + 'kind = "pagerduty"\n'
    variable = "HOPWATCH_ALERTS__CHANNELS__OPS__ROUTING_KEY"
    assert made(tmp_path, text + 'routing_key = "own"').read_secret("routing_key") == "own"
    assert made(tmp_path, text + 'routing_key_file = "key"').read_secret("routing_key") == "of-the-file"
    for other in ('routing_key = "own"', 'routing_key_file = "key"'):
        assert made(tmp_path, text + other, **{variable: "12345"}).read_secret("routing_key") == "12345"
        at = {f"{variable}_FILE": str(tmp_path / "key")}
        assert made(tmp_path, text + other, **at).read_secret("routing_key") == "of-the-file"


def test_a_channel_may_stand_in_the_environment_alone(tmp_path: Path) -> None:
    """And a name with a hyphen is found, as a variable spells it."""
    at = "HOPWATCH_ALERTS__CHANNELS"
    environ = {f"{at}__AM__KIND": "alertmanager", f"{at}__AM__URLS": "http://one:9093 http://two:9093"}
    assert made(tmp_path, STREAM, "am", **environ).urls == ("http://one:9093", "http://two:9093")
    environ = {f"{at}__ON_CALL__ROUTING_KEY": "k", f"{at}__ON_CALL__TIMEOUT": "5s"}
    channel = made(tmp_path, STREAM + '[alerts.channels.on-call]\nkind = "pagerduty"', "on-call", **environ)
    assert (channel.read_secret("routing_key"), channel.timeout_us) == ("k", 5_000_000)


def test_a_template_may_stand_in_a_file(tmp_path: Path) -> None:
    """Relative to the configuration; what is wrong with it is told at the key that names it."""
    (tmp_path / "text.j2").write_text("{{ summary }}")
    assert made(tmp_path, SLACK + 'template_file = "text.j2"').read_secret("template") == "{{ summary }}"
    (tmp_path / "text.j2").write_text("\n\n{% set x = 1 %}")
    (line,) = told(tmp_path, SLACK + 'template_file = "text.j2"')
    assert line.startswith(
        "h.toml:6: alerts.channels.ops.template_file: line 3 of the template: a template has {{ values }}"
    )


def test_no_secret_is_shown(tmp_path: Path) -> None:
    """By any channel, however it is printed."""
    text = SLACK + f'[alerts.channels.rest]\nkind = "apprise"\nurls = ["json://h/{HIDDEN}"]\n'
    text += f'[alerts.channels.hook]\nkind = "webhook"\nurl = "https://h/{HIDDEN}"\nsecret = "{HIDDEN}-and-more"\n'
    text += f'headers = {{ X = "{HIDDEN}" }}\n[alerts.channels.am]\nkind = "alertmanager"\nurls = ["http://am"]\n'
    text += f'bearer_token = "{HIDDEN}"\n'
    file = tmp_path / "h.toml"
    file.write_text(text)
    loaded = load(file, flags={}, environ={})
    assert len(loaded.alerts.channels) == 4
    assert HIDDEN not in f"{loaded!r} {loaded} {loaded.model_dump_json()}"


def test_only_alertmanager_is_told_of_heartbeats_by_itself() -> None:
    """Alertmanager is the only kind of channel that gets heartbeats by default."""
    beating = [kind for kind, table in KINDS.items() if table.model_fields["heartbeats"].default]
    assert beating == ["alertmanager"]
    assert all(issubclass(table, ChannelTable) for table in KINDS.values())


def test_pathway_check_says_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As text and as JSON, with 2 for an exit code."""
    file = tmp_path / "h.toml"
    file.write_text(TABLE + 'kind = "slack"\nurl = "T0P-5ECRET"\n[alerts.channels.x]\nkind = "pagerduty"\n')
    codes = [main(["pathway", "check", str(file), *flags]) for flags in ((), ("--json",))]
    said = capsys.readouterr()
    assert codes == [2, 2]
    problems = json.loads(said.out)["problems"]
    assert [problem["key"] for problem in problems] == ["alerts.channels.ops.url", "alerts.channels.x.routing_key"]
    assert HIDDEN not in said.out + said.err
