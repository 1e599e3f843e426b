"""Conservation: what became of all messages of a window, as parts that add up to those that are known."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.display import loss, texts
from hopwatch.monitor.results import WindowResult


@dataclass(frozen=True, slots=True)
class ConservationPart:
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
    """The bar, the sum in words, and notes beside it: name and words."""

    parts: tuple[ConservationPart, ...]
    total: str
    notes: tuple[tuple[str, str], ...]


def build_conservation(one: WindowResult) -> Conservation:
    """Return the bar of a window. An unknown part has no number, and is never 0."""
    parts = [_build_part(one, "delivered", one.delivered, "delivered")]
    parts += [
        _build_part(one, name, getattr(one, name), name) for name in ("filtered", "rejected") if getattr(one, name)
    ]
    parts += _build_lost_parts(one) if one.status.is_final else []
    parts += [_build_part(one, "in flight", one.in_flight, "flight")] if one.in_flight else []
    return Conservation(tuple(parts), _format_total(one), _build_notes(one))


def _format_total(one: WindowResult) -> str:
    """Return the sum in the words of SEMANTICS; until a window is final, nothing is lost in it."""
    sums = [f"{texts.format_count(getattr(one, name))} {name}" for name in ("delivered", "filtered", "rejected")]
    if one.status.is_final:
        sums.append(_format_lost(one))
    if one.in_flight or not one.status.is_final:
        sums.append(f"{texts.format_count(one.in_flight)} in flight")
    return f"{texts.format_count(one.known)} known = {' + '.join(sums)}"


def _format_lost(one: WindowResult) -> str:
    """Return the last part of the sum: the loss, or the missing messages with the bounds of the loss."""
    if one.lost == one.lost_lower:
        return f"{loss.format_loss(one) if not one.lost else texts.format_count(one.lost)} lost"
    unknown = loss.format_unknown(one.lost_lower, one.lost_upper)
    return f"{texts.format_count(one.lost)} missing ({loss.format_loss(one)} lost{unknown})"


def _build_lost_parts(one: WindowResult) -> list[ConservationPart]:
    """Return the parts of the loss: surely lost, missing without proof of loss, and unknown."""
    parts = [_build_part(one, "surely lost", one.lost_lower, "surely")] if one.lost_lower else []
    unsure = one.lost - one.lost_lower
    if unsure:
        parts.append(_build_part(one, "missing, lost or not", unsure, "missing"))
    if one.lost_upper is None:
        parts.append(ConservationPart("unknown", texts.UNKNOWN, "", 0.0, "unknown"))
    elif one.lost_upper > one.lost:
        more = f"{texts.UNKNOWN} up to {texts.format_count(one.lost_upper - one.lost)}"
        parts.append(ConservationPart("more that may be lost", more, "", 0.0, "unknown"))
    elif not parts:
        parts.append(_build_part(one, "lost", 0, "surely"))
    return parts


def _build_part(one: WindowResult, name: str, number: int, kind: str) -> ConservationPart:
    share = number / one.known if one.known else 0.0
    return ConservationPart(name, texts.format_count(number), texts.format_percent(number, one.known), share, kind)


def _build_notes(one: WindowResult) -> tuple[tuple[str, str], ...]:
    """Return the notes beside the sum: bounds, late messages, and observations that probes dropped."""
    told = []
    if one.status.is_final and one.lost_lower != one.lost_upper:
        least, most = texts.format_count(one.lost_lower), one.lost_upper
        told.append(
            ("loss", f"at least {least}, {'no upper bound' if most is None else f'at most {texts.format_count(most)}'}")
        )
    if one.overdue:
        told.append(
            ("overdue", f"{texts.format_count(one.overdue)} of those in flight are missing beyond a deadline, for sure")
        )
    if one.partial:
        told.append(("partial", loss.format_partial(one)))
    if one.deferred:
        told.append(("deferred", f"{texts.format_count(one.deferred)} kept by a node for a later try"))
    if one.recovered:
        told.append(("late", f"{texts.format_count(one.recovered)} recovered: counted as lost before they came"))
    dropped = sum(node.dropped for node in one.nodes)
    if dropped:
        told.append(("dropped by probes", f"{texts.format_count(dropped)} observations of which nothing else is known"))
    return tuple(told)
