"""Who stamps, when they were last heard, and what they missed."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.pages import filtering
from hopwatch.dashboards.reading.signs import ROWS, HowProbesStand
from hopwatch.dashboards.reading.told import Standing
from hopwatch.dashboards.views import instances
from hopwatch.dashboards.views.address import Folded
from hopwatch.dashboards.views.instances import Row
from hopwatch.monitor.accounting.instances import InstancePage

HEAD: Final = (
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


def show(looking: Looking, standing: Standing) -> None:
    """Draw the page."""
    here = looking.address
    filtering.show(looking, standing, has_range=False, has_search=True)
    is_all = here.folded is Folded.SHOWN
    answer = looking.ask(HowProbesStand(here.stream, here.search, here.part, is_all))
    if answer.value is None:
        st.error(markup.plain(answer.trouble or "nothing was read"))
        return
    roll = answer.value
    away = instances.folded(roll)
    st.html(f'<p class="hw-note">{markup.text(instances.summary(roll))}</p>')
    if away or is_all:
        filtering.fold(looking, markup.plain(away) if away else "Those that left long ago too")
    if roll.instances:
        cells = [_cells(looking, row) for row in instances.rows(roll, looking.clock.now_us(), looking.zone)]
        st.html(markup.table(HEAD, cells, "hw-signs", "Probe instances, those that need a person first"))
    else:
        _nothing(looking, roll)
    _parts(looking, roll)
    st.html(f'<p class="hw-note">{markup.text(_notes())}</p>')


def _cells(looking: Looking, row: Row) -> tuple[str, ...]:
    heard = f'<span class="hw-old">⚠ {markup.text(row.heard)}</span>' if row.is_late else markup.text(row.heard)
    chip = markup.chip(row.mark, looking.palette)
    return (
        filtering.place_of(looking, row.stream, row.node),
        markup.two(*row.who),
        f'{chip}<span class="hw-second">{markup.text(row.note)}</span>',
        heard,
        markup.two(*row.complete),
        markup.two(*row.batches),
        markup.two(*row.missing, is_loud=row.missing[0] != "0"),
        markup.two(*row.drops, is_loud=row.drops[0] != "0"),
        markup.two(*row.aside, is_loud=row.aside[0] != "0"),
        markup.two(*row.skew, is_loud=row.is_ahead),
    )


def _nothing(looking: Looking, roll: InstancePage) -> None:
    here = looking.address
    if here.part > 1 and roll.found:
        st.info("There are not so many instances: this part is empty.")
    elif here.search:
        st.info(markup.plain(f"no instance has {here.search!r:.80} in the name of its node, probe or stream"))
    elif roll.folded:
        st.info("No instance has told anything lately.")
    else:
        st.info("No probe has told anything yet.")


def _parts(looking: Looking, roll: InstancePage) -> None:
    """Draw which of the pages of rows this is, and the ways to those beside it."""
    part, most = looking.address.part, max(1, -(-roll.found // ROWS))
    if most == 1 and part == 1:
        return
    first = (part - 1) * ROWS
    told = f"{first + 1:,} to {first + len(roll.instances):,} of {roll.found:,}" if roll.instances else ""
    ways = [f'<span class="hw-note">{markup.text(told)}</span>'] if told else []
    if part > 1:
        ways.append(markup.link("← those before", looking.query(part=min(part - 1, most))))
    if part < most:
        ways.append(markup.link("those behind →", looking.query(part=part + 1)))
    st.html(f'<nav class="hw-pages" aria-label="Parts of the list">{"".join(ways)}</nav>')


def _notes() -> str:
    return (
        f"{instances.VERSIONS} Batches, holes and what was set aside are counted since an instance started, drops over "
        "windows that can still be judged again. A batch that was sent after it arrived shows a clock that is ahead; "
        "one that was sent long before may have been on its way."
    )
