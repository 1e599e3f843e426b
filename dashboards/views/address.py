"""State of a page as the query string of its URL, so that a link opens the same view for every user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

from hopwatch.monitor.results import format_iso
from hopwatch.probes.contract.limits import WINDOW_US

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
MAX_SHOWN: Final = 80
"""Characters of a wrong value that a sentence repeats."""
MAX_SEARCH_CHARS: Final = 200
"""Characters of what is searched for; names and ids are no longer than that."""
MAX_PART: Final = 1_000_000


Choice = TypeVar("Choice", bound=StrEnum)


class PageName(StrEnum):
    """The pages."""

    OVERVIEW = "overview"
    MAP = "map"
    STREAM = "stream"
    WINDOW = "window"
    MESSAGE = "message"
    PROBES = "probes"
    ALERTS = "alerts"
    QUALITY = "quality"

    @property
    def needs_stream(self) -> bool:
        """Return whether the page shows one stream, and nothing without one."""
        return self in {PageName.STREAM, PageName.WINDOW}

    @property
    def works_without_windows(self) -> bool:
        """Return whether the page has something to show before there is any window."""
        return self in {PageName.PROBES, PageName.ALERTS, PageName.QUALITY}


class RangePreset(StrEnum):
    """Ranges that end with the newest window, and so move on."""

    HOUR = "1h"
    SIX_HOURS = "6h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"


class Zone(StrEnum):
    """Time zone in which moments are shown."""

    UTC = "utc"
    LOCAL = "local"


class HeatMeasure(StrEnum):
    """Quantity that colours the heat map."""

    LOSS = "loss"
    LAG = "lag"


class ComparedPeriod(StrEnum):
    """Earlier range that a range is compared with."""

    NONE = "none"
    DAY = "day"
    WEEK = "week"


class FoldState(StrEnum):
    """State of rows that are folded away by default."""

    AWAY = "away"
    SHOWN = "shown"


@dataclass(frozen=True, slots=True)
class PageAddress:
    """Address of a view; ``from_us`` and ``to_us`` are a range that stays where it is, and come before ``range``.

    ``search`` and ``part``, counted from 1, are of a long list; ``folded`` says whether all of it is shown.
    """

    page: PageName = PageName.OVERVIEW
    stream: str = ""
    node: str = ""
    window_us: int | None = None
    range: RangePreset = RangePreset.HOUR
    from_us: int | None = None
    to_us: int | None = None
    zone: Zone = Zone.UTC
    heat: HeatMeasure = HeatMeasure.LOSS
    compare: ComparedPeriod = ComparedPeriod.NONE
    message_id: str = ""
    search: str = ""
    part: int = 1
    folded: FoldState = FoldState.AWAY

    @property
    def is_fixed(self) -> bool:
        """Return whether the range is fixed rather than following the present."""
        return self.from_us is not None and self.to_us is not None


def parse_address(query: Mapping[str, str]) -> tuple[PageAddress, tuple[str, ...]]:
    """Return the address of a query string, and a sentence for each part of it that makes no sense and is left out.

    A link that names a stream and no page, as alerts make them, is to the page of the stream.
    """
    wrong: list[str] = []
    stream = query.get("stream", "")
    from_us, to_us = _parse_moment(query, "from", wrong), _parse_moment(query, "to", wrong)
    if (from_us is None) != (to_us is None):
        wrong.append("a range has a from and a to: showing the newest hours instead")
        from_us = to_us = None
    elif from_us is not None and to_us is not None and from_us >= to_us:
        wrong.append(
            f"the range ends before it begins: from {format_iso(from_us)} to {format_iso(to_us)}; "
            "showing the newest instead"
        )
        from_us = to_us = None
    address = PageAddress(
        page=_parse_choice(query, "page", PageName.STREAM if stream else PageName.OVERVIEW, wrong),
        stream=stream,
        node=query.get("node", ""),
        window_us=_parse_window(query, wrong),
        range=_parse_choice(query, "range", RangePreset.HOUR, wrong),
        from_us=from_us,
        to_us=to_us,
        zone=_parse_choice(query, "zone", Zone.UTC, wrong),
        heat=_parse_choice(query, "heat", HeatMeasure.LOSS, wrong),
        compare=_parse_choice(query, "compare", ComparedPeriod.NONE, wrong),
        message_id=query.get("id", ""),
        # PostgreSQL knows no text with a NUL in it, and no name has one.
        search=query.get("find", "").replace("\0", "")[:MAX_SEARCH_CHARS],
        part=_parse_part(query, wrong),
        folded=_parse_choice(query, "folded", FoldState.AWAY, wrong),
    )
    if address.page.needs_stream and not stream:
        wrong.append("no stream is named: showing all of them")
        address = replace(address, page=PageName.OVERVIEW)
    elif address.page is PageName.WINDOW and address.window_us is None:
        wrong.append("no window is named: showing the stream")
        address = replace(address, page=PageName.STREAM)
    return address, tuple(wrong)


def format_address(address: PageAddress) -> dict[str, str]:
    """Return the query string that :func:`parse_address` turns into this address; defaults are left out."""
    usual = PageAddress()
    moments = {"window": address.window_us, "from": address.from_us, "to": address.to_us}
    names = ("range", "zone", "heat", "compare", "folded")
    chosen = {name: getattr(address, name) for name in names}
    implied = PageName.STREAM if address.stream else PageName.OVERVIEW
    parts = {} if address.page is implied else {"page": address.page.value}
    parts |= {name: value for name, value in _list_names(address) if value}
    parts |= {name: format_iso(value) for name, value in moments.items() if value is not None}
    parts |= {"part": str(address.part)} if address.part != usual.part else {}
    return parts | {name: value.value for name, value in chosen.items() if value is not getattr(usual, name)}


def _list_names(address: PageAddress) -> tuple[tuple[str, str], ...]:
    return ("stream", address.stream), ("node", address.node), ("id", address.message_id), ("find", address.search)


def parse_moment_us(text: str) -> int | None:
    """Return an ISO 8601 moment as µs since 1970, one without a zone as UTC; None where the text is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def _parse_moment(query: Mapping[str, str], name: str, wrong: list[str]) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    moment = parse_moment_us(text)
    if moment is None:
        wrong.append(f"{name} is a time such as 2026-01-01T00:00:00Z, got {text!r:.{MAX_SHOWN}}: left out")
    return moment


def _parse_window(query: Mapping[str, str], wrong: list[str]) -> int | None:
    window_us = _parse_moment(query, "window", wrong)
    return None if window_us is None else window_us - window_us % WINDOW_US


def _parse_part(query: Mapping[str, str], wrong: list[str]) -> int:
    text = query.get("part", "1")
    if text.isascii() and text.isdigit() and 1 <= len(text) <= len(str(MAX_PART)) and 1 <= int(text) <= MAX_PART:
        return int(text)
    wrong.append(f"part is a number from 1 on, got {text!r:.{MAX_SHOWN}}: showing the first")
    return 1


def _parse_choice(query: Mapping[str, str], name: str, usual: Choice, wrong: list[str]) -> Choice:
    text = query.get(name, usual.value)
    try:
        return type(usual)(text)
    except ValueError:
        known = ", ".join(type(usual))
        wrong.append(f"{name} is one of {known}; got {text!r:.{MAX_SHOWN}}: showing {usual.value}")
        return usual
