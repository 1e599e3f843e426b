"""Conservation: what became of all messages of a window, as parts that add up to those that are known."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.dashboards.views import loss, texts
from hopwatch.monitor.results import WindowResult


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the bar: its name, how many messages, their share of all, and as what it is drawn.

    ``kind`` is one of delivered, filtered, rejected, surely, missing, flight and unknown.
    """

    name: str
    number: str
    percent: str
    share: float
    kind: str


@dataclass(frozen=True, slots=True)
class Conservation:
    """The bar, the sum in words, and what is told apart from it: name and words."""

    parts: tuple[Part, ...]
    total: str
    apart: tuple[tuple[str, str], ...]


def of(one: WindowResult) -> Conservation:
    """Return the bar of a window. What nobody knows has a part without a number, and is never one of 0."""
    parts = [_part(one, "delivered", one.delivered, "delivered")]
    parts += [_part(one, name, getattr(one, name), name) for name in ("filtered", "rejected") if getattr(one, name)]
    parts += _lost(one) if one.status.is_final else []
    parts += [_part(one, "in flight", one.in_flight, "flight")] if one.in_flight else []
    return Conservation(tuple(parts), _total(one), _apart(one))


def _total(one: WindowResult) -> str:
    """Return the sum in the words of SEMANTICS; until a window is final, nothing is lost in it."""
    sums = [f"{texts.count(getattr(one, name))} {name}" for name in ("delivered", "filtered", "rejected")]
    if one.status.is_final:
        sums.append(_gone(one))
    if one.in_flight or not one.status.is_final:
        sums.append(f"{texts.count(one.in_flight)} in flight")
    return f"{texts.count(one.known)} known = {' + '.join(sums)}"


def _gone(one: WindowResult) -> str:
    """Return the last part of the sum: what was lost, or what is missing and how much of it that may be."""
    if one.lost == one.lost_lower:
        return f"{loss.lost(one) if not one.lost else texts.count(one.lost)} lost"
    unknown = loss.unknown(one.lost_lower, one.lost_upper)
    return f"{texts.count(one.lost)} missing ({loss.lost(one)} lost{unknown})"


def _lost(one: WindowResult) -> list[Part]:
    """Return what was lost surely, what is missing and was not shown to be lost, and what nobody can count."""
    parts = [_part(one, "surely lost", one.lost_lower, "surely")] if one.lost_lower else []
    unsure = one.lost - one.lost_lower
    if unsure:
        parts.append(_part(one, "missing, lost or not", unsure, "missing"))
    if one.lost_upper is None:
        parts.append(Part("more that nobody knows", texts.UNKNOWN, "", 0.0, "unknown"))
    elif one.lost_upper > one.lost:
        more = f"{texts.UNKNOWN} up to {texts.count(one.lost_upper - one.lost)}"
        parts.append(Part("more that may be lost", more, "", 0.0, "unknown"))
    elif not parts:
        parts.append(_part(one, "lost", 0, "surely"))
    return parts


def _part(one: WindowResult, name: str, number: int, kind: str) -> Part:
    share = number / one.known if one.known else 0.0
    return Part(name, texts.count(number), texts.percent(number, one.known), share, kind)


def _apart(one: WindowResult) -> tuple[tuple[str, str], ...]:
    """Return what the sum does not hold: bounds, what came late, and what probes counted and did not tell."""
    told = []
    if one.status.is_final and one.lost_lower != one.lost_upper:
        least, most = texts.count(one.lost_lower), one.lost_upper
        told.append(
            ("loss", f"at least {least}, {'no upper bound' if most is None else f'at most {texts.count(most)}'}")
        )
    if one.partial:
        told.append(("partial", loss.partial(one)))
    if one.recovered:
        told.append(("late", f"{texts.count(one.recovered)} recovered: counted as lost before they came"))
    dropped = sum(node.dropped for node in one.nodes)
    if dropped:
        told.append(("dropped by probes", f"{texts.count(dropped)} observations of which nothing else is known"))
    return tuple(told)
