"""Templates of notifications: Jinja2 in a sandbox, with bounds on time and memory.

A template has values (:data:`monitor.settings.template_sample.SAMPLE` has all of them), loops, conditions and filters.
It cannot assign, call or load anything, so that no text grows from itself; loops are nested at most ``MAX_NESTING``
deep with at most ``MAX_ITERATIONS`` each, and the result of a filter has at most ``MAX_CHARS``. A wrong template is
refused when it is loaded: it is compiled, and rendered with the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, wraps
from typing import Any, Final

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hopwatch.monitor.settings.error_details import suggest_names
from hopwatch.monitor.settings.template_sample import SAMPLE

MAX_CHARS: Final = 20_000
"""Length of a template, of the result of a filter, and of the rendered text."""
MAX_NESTING: Final = 3
MAX_CACHED: Final = 100
"""Compiled templates in the cache."""
MAX_ITERATIONS: Final = 100
"""Iterations of a loop; there are fewer alerts, ids and labels than that."""
_LOOP_FILTER: Final = "each of a loop"
_MAX_NUMBER: Final = 10**15

_ALLOWED_NODES: Final = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Name, nodes.Getattr),
    *(nodes.Getitem, nodes.Slice, nodes.Const, nodes.Tuple, nodes.Filter, nodes.Test, nodes.Compare, nodes.Operand),
    *(nodes.And, nodes.Or, nodes.Not, nodes.CondExpr, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv),
    *(nodes.Mod, nodes.Neg, nodes.Pos),
)
_ALLOWED_TESTS: Final = ("defined", "undefined", "none", "number", "string", "eq", "ne", "lt", "le", "gt", "ge", "in")


class TemplateFaultError(ValueError):
    """A template is invalid or fails; the message has the line, if it is known."""


def check_template(text: str) -> str:
    """Check a template: compile it, and render it with the sample.

    Raises:
        TemplateFaultError: it does not compile, or fails on the sample.
    """
    for event in ("firing", "resolved"):
        render_template(text, {**SAMPLE, "event": event})
    return text


def render_template(text: str, values: Mapping[str, Any]) -> str:
    """Render a template, cut to ``MAX_CHARS``.

    Raises:
        TemplateFaultError: it cannot be compiled, or fails on these values.
    """
    parts: list[str] = []
    left = MAX_CHARS
    try:
        for part in _compile(text).generate(values):
            parts.append(part[:left])
            left -= len(parts[-1])
            if left <= 0:
                break
    except TemplateFaultError:
        raise
    except Exception as error:  # noqa: BLE001 - a failing template must not stop a notification
        raise TemplateFaultError(f"the template fails: {' '.join(str(error).split()):.200}") from None
    return "".join(parts)


@lru_cache(maxsize=MAX_CACHED)
def _compile(text: str) -> Template:
    if len(text) > MAX_CHARS:
        raise TemplateFaultError(f"a template has at most {MAX_CHARS:,} characters, this one {len(text):,}")
    try:
        tree = _ENVIRONMENT.parse(text)
        _check_nodes(tree, 0)
        return _ENVIRONMENT.from_string(tree)
    except TemplateSyntaxError as error:
        raise TemplateFaultError(f"line {error.lineno} of the template: {error.message:.200}") from None
    except RecursionError:
        raise TemplateFaultError("the template is nested too deeply") from None
    except SyntaxError as error:
        # Jinja accepts more than Python, which it compiles templates to.
        raise TemplateFaultError(f"the template fails: {error.msg:.200}") from None


def _check_nodes(node: nodes.Node, loops: int) -> None:
    """Check that a template has allowed nodes only, and bound its loops by :func:`_check_loop`."""
    where = f"line {node.lineno} of the template"
    if not isinstance(node, _ALLOWED_NODES):
        what = type(node).__name__.lower()
        allowed = "a template has {{ values }}, filters, {% for %} and {% if %}, and nothing else"
        raise TemplateFaultError(f"{where}: {allowed}; got {what}")
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        raise TemplateFaultError(
            f"{where}: there is no filter {node.name!r:.80}{suggest_names(node.name, list(FILTERS))}"
        )
    if isinstance(node, nodes.Test) and node.name not in _ALLOWED_TESTS:
        raise TemplateFaultError(
            f"{where}: there is no test {node.name!r:.80}{suggest_names(node.name, _ALLOWED_TESTS)}"
        )
    if isinstance(node, nodes.For):
        loops += 1
        if node.recursive or loops > MAX_NESTING:
            raise TemplateFaultError(f"{where}: loops stand in one another {MAX_NESTING} deep at most, none in itself")
    for child in node.iter_child_nodes():
        _check_nodes(child, loops)
    if isinstance(node, nodes.For):
        node.iter = nodes.Filter(node.iter, _LOOP_FILTER, [], [], None, None, lineno=node.lineno)


class _Environment(ImmutableSandboxedEnvironment):
    """Sandbox without calls, and with arithmetic for numbers only: ``"x" * 10 ** 9`` would be a text."""

    intercepted_binops = frozenset(["*", "%", "+", "-", "/", "//"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401, ARG002 - the library's signature
        numbers = all(isinstance(one, int | float) and abs(one) < _MAX_NUMBER for one in (left, right))
        if not numbers:
            raise SecurityError(f"{operator} is for numbers; put texts beside each other, or join them")
        return self.binop_table[operator](left, right)

    def is_safe_callable(self, obj: Any) -> bool:  # noqa: ANN401, ARG002 - the library's signature
        return False


def _format_percent(value: float, digits: int = 2) -> str:
    return f"{value:.{min(max(digits, 0), 9)}%}"


def _format_seconds(value_us: float, digits: int = 3) -> str:
    return f"{value_us / 1e6:,.{min(max(digits, 0), 9)}f}"


def _format_thousands(value: float) -> str:
    return f"{value:,}"


def _format_time(value_us: int) -> str:
    return datetime.fromtimestamp(value_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _join(values: Iterable[object], between: str = "") -> str:
    if len(between) > MAX_CHARS // 1_000:
        raise SecurityError(f"join puts at most {MAX_CHARS // 1_000} characters between what it joins")
    return between.join(map(str, values))


def _check_loop(values: object) -> object:
    if isinstance(values, list | tuple | Mapping) and len(values) <= MAX_ITERATIONS:
        return values
    raise SecurityError(f"a loop goes through a list of at most {MAX_ITERATIONS}, such as alerts")


def _items(values: Mapping[str, object]) -> list[tuple[str, object]]:
    return list(values.items())


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(most - 1, 0)] + "…"


def _limit_length(of: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(of)
    def bounded(*values: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the filter takes
        made = of(*values, **named)
        return made[:MAX_CHARS] if isinstance(made, str) else made

    return bounded


_FILTER_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "capitalize": lambda text: str(text).capitalize(),
    "first": lambda values: next(iter(values), ""),
    "int": int,
    "items": _items,
    "join": _join,
    "length": len,
    "lower": lambda text: str(text).lower(),
    "percent": _format_percent,
    "round": round,
    "seconds": _format_seconds,
    "shortened": _shorten,
    "string": str,
    "thousands": _format_thousands,
    "time": _format_time,
    "title": lambda text: str(text).title(),
    "trim": lambda text: str(text).strip(),
    "upper": lambda text: str(text).upper(),
}
FILTERS: Final = {name: _limit_length(of) for name, of in _FILTER_FUNCTIONS.items()}


def _build_environment() -> _Environment:
    # The optimizer asks each level of a nested expression anew for a constant: 300 levels took it eight seconds.
    environment = _Environment(
        undefined=StrictUndefined, keep_trailing_newline=False, trim_blocks=True, lstrip_blocks=True, optimized=False
    )
    environment.globals.clear()
    environment.filters = {**FILTERS, _LOOP_FILTER: _check_loop}
    environment.tests = {name: environment.tests[name] for name in _ALLOWED_TESTS}
    return environment


_ENVIRONMENT: Final = _build_environment()
