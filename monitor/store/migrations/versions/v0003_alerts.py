"""Alerts: where each stands, what is to be told, what was, and the minutes that budgets are summed from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0003"
down_revision: Final = "0002"


def upgrade() -> None:
    """Make the tables; no alert is older than they are."""
    _make_standing()
    _make_outbox()
    op.create_table(
        "objective_minutes",
        _words("stream", is_key=True),
        _words("objective", is_key=True),
        _key("window_start_us"),
        *_counts("total", "bad"),
        comment="What each window adds to an objective; one that says nothing has no row",
    )
    key, bad = ["stream", "objective", "window_start_us"], sa.text("bad > 0")
    op.create_index("objective_minutes_bad", "objective_minutes", key, sqlite_where=bad, postgresql_where=bad)


def _words(name: str, *, is_key: bool = False) -> sa.Column[str]:
    kind = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    return sa.Column(name, kind, primary_key=is_key, nullable=False)


def _key(name: str, kind: Any = sa.BigInteger) -> sa.Column[Any]:  # noqa: ANN401 - a type, or one with a size
    return sa.Column(name, kind, primary_key=True, autoincrement=False, nullable=False)


def _short(name: str, size: int) -> sa.Column[str]:
    return sa.Column(name, sa.String(size), nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _counts(*names: str) -> Iterator[sa.Column[int]]:
    return (sa.Column(name, sa.BigInteger, nullable=False) for name in names)


def _make_standing() -> None:
    op.create_table(
        "alert_states",
        _words("rule", is_key=True),
        _key("severity", sa.String(8)),
        _words("stream", is_key=True),
        _words("node", is_key=True),
        _short("phase", 8),
        *_counts("since_us"),
        _words("told_as"),
        _text("state"),
        comment="Alerts that are bad, or were so lately; of what is well there is no row",
    )
    op.create_table(
        "alert_incidents",
        _words("key", is_key=True),
        *_counts("opened_us"),
        _text("incident"),
        _text("notification"),
        comment="Incidents that are open, and what they say now",
    )
    op.create_table(
        "alert_acknowledgements",
        _words("key", is_key=True),
        *_counts("opened_us", "at_us"),
        _words("by"),
        _words("note"),
        comment="Who has taken on which incident, known by its key and when it was opened",
    )


def _make_outbox() -> None:
    op.create_table(
        "alert_history",
        _key("number"),
        _words("key"),
        _short("event", 8),
        *_counts("at_us"),
        _text("notification"),
        comment="All that was ever to be told, numbered",
    )
    op.create_index("alert_history_by_key", "alert_history", ["key", "number"])
    op.create_index("alert_history_by_time", "alert_history", ["at_us"])
    op.create_table(
        "alert_outbox",
        _key("number"),
        _words("channel", is_key=True),
        _words("key"),
        _short("event", 8),
        _short("state", 16),
        *_counts("created_us", "next_try_us", "tries", "told_us"),
        _words("last_error"),
        comment="One row a notification and channel: what is to be sent, and what has become of it",
    )
    op.create_index("alert_outbox_by_key", "alert_outbox", ["key", "channel"])
    op.create_index("alert_outbox_by_state", "alert_outbox", ["state", "next_try_us"])
