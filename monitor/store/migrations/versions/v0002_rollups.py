"""Hours and days, and what keeps them true: which hours are stale, and what was pruned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0002"
down_revision: Final = "0001"

_LAG: Final = ("count", "min", "p50", "p95", "p99", "max")
_HOUR_US: Final = 3_600_000_000


def upgrade() -> None:
    """Make the tables; every hour that there is has yet to be rolled up."""
    _make_rollups()
    _make_node_rollups()
    op.create_table(
        "stale_hours",
        _words("stream", is_key=True),
        _key("start_us"),
        comment="Hours of which a window was written since they were rolled up, or that never were",
    )
    op.create_table(
        "pruned_quarantine",
        _words("reason", is_key=True),
        *_counts("records"),
        comment="How many quarantined records were pruned, by reason: the accounts go on counting them",
    )
    op.create_index("quarantine_by_arrival", "quarantine", ["arrival_us"])
    hour = f"window_start_us - ((window_start_us % {_HOUR_US}) + {_HOUR_US}) % {_HOUR_US}"
    op.execute(f"INSERT INTO stale_hours SELECT DISTINCT stream, {hour} FROM windows")  # noqa: S608 - of constants


def _words(name: str, *, is_key: bool = False) -> sa.Column[str]:
    kind = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    return sa.Column(name, kind, primary_key=is_key, nullable=False)


def _key(name: str, kind: Any = sa.BigInteger) -> sa.Column[Any]:  # noqa: ANN401 - a type, or one with a size
    return sa.Column(name, kind, primary_key=True, autoincrement=False, nullable=False)


def _counts(*names: str) -> Iterator[sa.Column[int]]:
    return (sa.Column(name, sa.BigInteger, nullable=False) for name in names)


def _lags(*names: str) -> Iterator[sa.Column[int]]:
    return (sa.Column(f"{name}_{part}", sa.BigInteger) for name in names for part in _LAG)


def _make_rollups() -> None:
    op.create_table(
        "rollups",
        _words("stream", is_key=True),
        _key("span", sa.String(8)),
        _key("start_us"),
        *_counts("windows", "silent", "idle", "lossy", "clean", "unknown"),
        *_counts("known", "delivered", "filtered", "rejected", "lost", "lost_lower"),
        sa.Column("lost_upper", sa.BigInteger),
        sa.Column("loss_ratio", sa.Float(53)),
        *_counts("in_flight", "recovered"),
        *_lags("lag_us"),
        sa.Column("is_frozen", sa.Boolean, nullable=False),
        comment="Hours and days; frozen is what has lost its windows to a prune",
    )


def _make_node_rollups() -> None:
    op.create_table(
        "node_rollups",
        _words("stream", is_key=True),
        _key("span", sa.String(8)),
        _key("start_us"),
        _key("place", sa.Integer),
        _words("node"),
        *_counts("expected", "seen", "arrived", "departed", "filtered", "rejected"),
        *_counts("lost_in_transit", "lost_inside", "lost_after", "loss", "loss_lower"),
        sa.Column("loss_upper", sa.BigInteger),
        sa.Column("loss_ratio", sa.Float(53)),
        *_counts("in_flight", "unobserved", "orphans", "duplicates_in", "duplicates_out", "lag_negative", "dropped"),
        *_lags("lag_in_us", "lag_out_us", "inside_us"),
        sa.Column("process_duration_p95_us", sa.BigInteger),
        *(
            sa.Column(f"{name}_digest", sa.LargeBinary, nullable=False)
            for name in ("lag_in_us", "lag_out_us", "inside_us")
        ),
    )
