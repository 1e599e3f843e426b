"""Page of probe instances: state, last contact and gaps of each."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import filters
from hopwatch.dashboards.queries.health import MAX_ROWS, ProbesQuery
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.views import instances
from hopwatch.dashboards.views.address import FoldState
from hopwatch.dashboards.views.instances import InstanceRow
from hopwatch.monitor.accounting.instances import InstancePage

COLUMNS: Final = (
    ("Node, stream", "hw-name"),
    ("Probe", "hw-who"),
    ("State", "hw-narrow"),
    ("Last heard", "hw-narrow"),
    ("Complete through", "hw-narrow"),
    ("Batches read", "hw-narrow"),
    ("Missing", "hw-where"),
    ("Drops by cause", "hw-why"),
    ("Set aside", "hw-why"),
    ("Clock", "hw-why"),
)


def draw_page(context: PageContext, standing: StreamsOverview) -> None:
    """Draw the page."""
    here = context.address
    filters.draw_filters(context, standing, has_range=False, search_label="Node, probe or stream")
    is_all = here.folded is FoldState.SHOWN
    answer = context.fetch(ProbesQuery(here.stream, here.search, here.part, is_all))
    if answer.value is None:
        st.error(markup.escape_markdown(answer.error or "nothing was read"))
        return
    roll = answer.value
    away = instances.format_folded(roll)
    st.html(f'<p class="hw-note">{markup.escape_html(instances.format_summary(roll))}</p>')
    if away or is_all:
        filters.draw_fold_control(context, markup.escape_markdown(away) if away else "Those that left long ago too")
    if roll.instances:
        cells = [_format_row(context, row) for row in instances.build_rows(roll, context.clock.now_us(), context.zone)]
        st.html(markup.table(COLUMNS, cells, "hw-signs", "Probe instances, those that need a person first"))
    else:
        _draw_nothing_found(context, roll)
    _draw_page_links(context, roll)
    st.html(f'<p class="hw-note">{markup.escape_html(_format_notes())}</p>')


def _format_row(context: PageContext, row: InstanceRow) -> tuple[str, ...]:
    heard = (
        f'<span class="hw-old">⚠ {markup.escape_html(row.last_heard)}</span>'
        if row.is_late
        else markup.escape_html(row.last_heard)
    )
    chip = markup.chip(row.mark, context.palette)
    return (
        filters.link_node_and_stream(context, row.stream, row.node),
        markup.two_lines(*row.probe),
        f'{chip}<span class="hw-second">{markup.escape_html(row.note)}</span>',
        heard,
        markup.two_lines(*row.complete_through),
        markup.two_lines(*row.batches),
        markup.two_lines(*row.missing, is_loud=row.missing[0] != "0"),
        markup.two_lines(*row.drops, is_loud=row.drops[0] != "0"),
        markup.two_lines(*row.set_aside, is_loud=row.set_aside[0] != "0"),
        markup.two_lines(*row.clock_skew, is_loud=row.is_ahead),
    )


def _draw_nothing_found(context: PageContext, roll: InstancePage) -> None:
    here = context.address
    if here.part > 1 and roll.found:
        st.info("There are not so many instances: this part is empty.")
    elif here.search:
        st.info(markup.escape_markdown(f"no instance has {here.search!r:.80} in the name of its node, probe or stream"))
    elif roll.folded:
        st.info("No instance has reported lately.")
    else:
        st.info("No probe has reported yet.")


def _draw_page_links(context: PageContext, roll: InstancePage) -> None:
    """Draw which of the pages of rows this is, and the ways to those beside it."""
    part, most = context.address.part, max(1, -(-roll.found // MAX_ROWS))
    if most == 1 and part == 1:
        return
    first = (part - 1) * MAX_ROWS
    told = f"{first + 1:,} to {first + len(roll.instances):,} of {roll.found:,}" if roll.instances else ""
    ways = [f'<span class="hw-note">{markup.escape_html(told)}</span>'] if told else []
    if part > 1:
        ways.append(markup.link("← those before", context.url_query(part=min(part - 1, most))))
    if part < most:
        ways.append(markup.link("those behind →", context.url_query(part=part + 1)))
    st.html(f'<nav class="hw-pages" aria-label="Parts of the list">{"".join(ways)}</nav>')


def _format_notes() -> str:
    return (
        f"{instances.VERSIONS} Batches, holes and what was set aside are counted since an instance started, drops over "
        "windows that can still be judged again. A batch that was sent after it arrived shows a clock that is ahead; "
        "one that was sent long before may have been on its way."
    )
