"""Panel of nodes with several versions: how much more the newest loses, and how much more often it is slow."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.comparisons import ComparisonsQuery
from hopwatch.dashboards.views.display_range import DisplayRange
from hopwatch.display import texts
from hopwatch.display.comparison import COMPARISON_COLUMNS, build_comparison_lines, describe_pair, describe_unknown
from hopwatch.monitor.lookup.comparison import VersionComparison

_KINDS: Final = ("hw-name", *["hw-number"] * (len(COMPARISON_COLUMNS) - 1))
_HEAD: Final = tuple((name.capitalize(), kind) for name, kind in zip(COMPARISON_COLUMNS, _KINDS, strict=True))


def draw_comparisons(context: PageContext, shown: DisplayRange) -> None:
    """Draw the newest version of each node at which it ran beside others; nothing where there is none."""
    answer = context.fetch(ComparisonsQuery(context.address.stream, shown.from_us, shown.to_us))
    if answer.value:
        with st.container(border=True, key="comparisons"):
            note = "The newest version of a node against all others, by the final windows in which both have messages."
            st.html(
                markup.title("Version against version", note)
                + "".join(_format_one(context, one) for one in answer.value)
            )


def _format_one(context: PageContext, found: VersionComparison) -> str:
    what = f"{found.query.node}: {describe_pair(found)}"
    if found.from_us is not None and found.to_us is not None:
        ends = (texts.format_moment(at_us, context.zone) for at_us in (found.from_us, found.to_us))
        what += f", {found.windows:,} windows, {' to '.join(ends)}"
    rows = [
        [markup.emphasis(cell, is_bad=line.is_bad and place > 0) for place, cell in enumerate(line.cells)]
        for line in build_comparison_lines(found)
    ]
    unknown = describe_unknown(found)
    table = markup.table(_HEAD, rows, "hw-labels", what)
    return markup.note(what) + table + (markup.note_list(unknown) if unknown else "")
