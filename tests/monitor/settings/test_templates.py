"""Tests of templates: what they can say, what they cannot do, and that work and memory have bounds."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.alerts.channels import template_texts
from hopwatch.monitor.settings.template_sample import SAMPLE
from hopwatch.monitor.settings.templates import MAX_CHARS, TemplateFaultError, check_template, render_template
from tests.support.deliveries import NOTIFICATIONS, delivery, firing


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ event|upper }} {{ severity|title }}", "FIRING Page"),
        (
            "{% for alert in alerts %}{{ loop.index }}: {{ alert.node }} {{ alert.observed|percent }}{% endfor %}",
            "1: b 2.00%",
        ),
        ("{{ labels.stream }}{{ labels.team }}", "orders"),
        (
            "{% for name, value in labels|items %}{{ name }}={{ value }};{% endfor %}",
            "rule=loss;severity=page;stream=orders;",
        ),
        ("{{ since_us|time }} {{ 1500000|seconds }} {{ 12345|thousands }}", "2026-01-01T00:00:00Z 1.500 12,345"),
        ("{{ alerts[0].lost_ids|join(', ')|shortened(5) }}", "0000…"),
        ("{{ total + 1 }} {{ total * 2 }} {{ -total }} {{ 7 // 2 }} {{ 7 % 2 }}", "2 2 -1 3 1"),
        ("{% if total > 1 and event == 'firing' %}many{% elif not is_again %}one{% endif %}", "one"),
        ("{{ 'yes' if is_acknowledged else 'no' }} {{ summary[:4]|capitalize|trim }}", "no Lost"),
        (
            "{{ alerts|length }}{{ (alerts|first).node }}{{ 2.5|round }}{{ '7'|int }}{{ 7|string }}{{ 'A'|lower }}",
            "1b277a",
        ),
    ],
)
def test_what_a_template_can_say(template: str, expected: str) -> None:
    """Values, loops, questions and filters."""
    assert render_template(template, SAMPLE) == expected


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ summary }", "line 1 of the template: unexpected '}'"),
        ("a\n{% for x in alerts %}", "line 2 of the template: Unexpected end of template."),
        ("{{ sumary }}", "the template fails: 'sumary' is undefined"),
        ("{{ alerts[3].node }}", "the template fails: list object has no element 3"),
        ("{{ summary|uper }}", "line 1 of the template: there is no filter 'uper'; did you mean 'upper'?"),
        ("{% if 1 is divisibleby 2 %}{% endif %}", "line 1 of the template: there is no test 'divisibleby'"),
        ("{{ 1 / 0 }}", "the template fails: division by zero"),
        ("{{ summary|items }}", "the template fails: 'str' object has no attribute 'items'"),
        ("{{ 999999999999999999999999|time }}", "the template fails: [Errno 75] Value too large"),
        ("{% if total %}" * 120 + "{% endif %}" * 120, "the template fails: too many levels of indentation"),
        ("{{ " + "not " * 300 + "total }}", "the template fails: too many nested parentheses"),
        ("{{ 'x' * 1000000000 }}", "the template fails: * is for numbers; put texts beside each other, or join them"),
        ("{{ '%1000000000d' % 1 }}", "the template fails: % is for numbers"),
        ("{{ alerts|join('x' * 5) }}", "the template fails: * is for numbers"),
        ("{{ summary|join(summary) }}", "the template fails: join puts at most 20 characters"),
        ("{{ 9999999999999999 + 1 }}", "the template fails: + is for numbers"),
        ("{{ 1|round(-400) }}", ""),
        ("{{ 'a'|int }}", "the template fails: invalid literal for int()"),
        ("{{ summary.upper() }}", "line 1 of the template: a template has {{ values }}, filters"),
        ("{{ ''.__class__ }}", "the template fails: access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ labels.__class__ }}", "the template fails: access to attribute '__class__' of 'Labels' object is unsafe."),
        ("{% set x = 1 %}", "line 1 of the template: a template has {{ values }}, filters"),
        ("{% macro x() %}{% endmacro %}", "line 1 of the template: a template has {{ values }}, filters"),
        ("{% include 'x' %}", "line 1 of the template: a template has {{ values }}, filters"),
        ("{{ 2 ** 99999 }}", "line 1 of the template: a template has {{ values }}, filters"),
        ("{{ summary ~ summary }}", "line 1 of the template: a template has {{ values }}, filters"),
        ("{{ [summary, summary] }}", "line 1 of the template: a template has {{ values }}, filters"),
        ("{% for a in summary %}{% endfor %}", "the template fails: a loop goes through a list of at most 100"),
        ("{% for a in (" + "1," * 101 + ") %}{% endfor %}", "the template fails: a loop goes through a list of at"),
        ("{% for a in alerts recursive %}{% endfor %}", "line 1 of the template: loops stand in one another"),
        (
            "{% for a in summary %}" * 4 + "{% endfor %}" * 4,
            "line 1 of the template: loops stand in one another 3 deep",
        ),
        ("x" * (MAX_CHARS + 1), "a template has at most 20,000 characters, this one 20,001"),
        ("{{ " + "(" * 5_000 + ")" * 5_000 + " }}", "the template is nested too deeply"),
    ],
)
def test_what_a_template_cannot_do(template: str, told: str) -> None:
    """A template that cannot work is refused when it is loaded, with its line if that is known."""
    if not told:
        assert check_template(template) == template
        return
    with pytest.raises(TemplateFaultError) as refused:
        check_template(template)
    assert str(refused.value).startswith(told)


def test_a_text_that_grows_is_cut() -> None:
    """Loops in loops end when there is enough, not when they are through."""
    template = "{% for a in alerts %}{% for b in alerts %}{% for c in alerts %}" + "x" * 1_000 + "{% endfor %}" * 3
    assert len(render_template(template, {**SAMPLE, "alerts": [{}] * 20})) == MAX_CHARS


def test_a_template_sees_what_the_sample_has() -> None:
    """The sample that templates are checked with has the fields of a real delivery, and no others."""
    seen = template_texts.build_values(delivery(firing()))
    assert seen.keys() == SAMPLE.keys()
    assert seen["alerts"][0].keys() == SAMPLE["alerts"][0].keys()
    types = {name: type(value) for name, value in seen.items()}
    assert types == {name: type(value) for name, value in SAMPLE.items()}


@given(NOTIFICATIONS)
def test_values_are_never_read_as_templates(told: object) -> None:
    """A value is rendered as text in one line, also if it looks like a template."""
    seen = template_texts.build_values(delivery(told))  # type: ignore[arg-type]  # a notification
    assert render_template("{{ summary }}", seen) == seen["summary"][:MAX_CHARS]
    assert "\n" not in seen["summary"]


@given(st.text(alphabet="{}%|.()[]'\"abcalertsumy 019-+*/~\n", max_size=60))
def test_whatever_a_template_is_it_is_taken_or_refused(template: str) -> None:
    """In words; no other error comes of it."""
    with suppress(TemplateFaultError):
        assert len(render_template(check_template(template), SAMPLE)) <= MAX_CHARS
