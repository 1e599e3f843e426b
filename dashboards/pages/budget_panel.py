"""Panel of the error budgets of a stream: what is left of each, for how long, and how it was spent."""

from __future__ import annotations

import streamlit as st

from hopwatch.alerts.budget_texts import describe_objective, describe_state
from hopwatch.dashboards import markup
from hopwatch.dashboards.charts import burn_chart
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.budgets import BudgetsQuery, TracedBudget


def draw_budgets(context: PageContext) -> None:
    """Draw each budget of the stream; nothing where no rule of a burn rate has counted anything."""
    found = context.fetch(BudgetsQuery(context.address.stream)).value
    if not found:
        return
    with st.container(border=True, key="budgets"):
        note = "Of thirty days, whatever range is chosen: the part of the messages that may be bad by each objective."
        st.html(markup.title("Error budgets", note) + "".join(_format_budget(context, one) for one in found))


def _format_budget(context: PageContext, one: TracedBudget) -> str:
    left = one.budget.left_ratio
    state = markup.emphasis(describe_state(one.budget), is_bad=left is not None and left <= 0)
    words = f'<p class="hw-note">{markup.escape_html(describe_objective(one.budget))}: {state}</p>'
    if not one.traced:
        return words
    picture = burn_chart.draw_budget(one.traced, context.palette, context.zone)
    return words + markup.image(picture, burn_chart.describe_trace(one.traced, context.zone), "hw-wide")
