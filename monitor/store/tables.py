"""Tables of the store. A lag is six columns (count, min, p50, p95, p99, max) with its name; times are µs since 1970."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.types import TypeEngine

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.books import InstanceCounts
from hopwatch.monitor.kernel.count_lags import CountLags
from hopwatch.monitor.kernel.tally import NEVER_US, NodeLags
from hopwatch.monitor.results import NodeResult, NodeRollUp, PathTime, Quantiles, Status

SCHEMA_VERSION: Final = "0033"
"""The newest of :mod:`monitor.store.migrations.versions`, which makes these tables."""

FINAL_STATUSES: Final = tuple(status.value for status in Status if status.is_final)
"""Statuses of a window that was judged."""
QUANTILE_FIELDS: Final = tuple(field.name for field in fields(Quantiles))
PATH_TIME_FIELDS: Final = tuple(field.name for field in fields(PathTime) if field.name not in {"source", "time_us"})
TALLY_FIELDS: Final = InstanceCounts._fields
NODE_LAGS: Final = ("lag_in_us", "lag_out_us", "inside_us")
DISPLACEMENT: Final = "displacement"
NODE_DIGESTS: Final = (*NODE_LAGS, DISPLACEMENT)
"""What a node has a digest of, figures in columns under its name, and the digest itself."""
DROPPED_DIGEST: Final = b""
"""Column of a digest of a minute that was dropped; a stored digest is never empty."""

metadata: Final = MetaData()

_NUL, _MARK = "\0", "\u2400"


class ExactText(TypeDecorator[str]):
    """Column type for names and foreign text: stored unchanged, sorted by code point under every database locale.

    PostgreSQL cannot store NUL in text, and a probe may have one in its name: there it is escaped.
    """

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the column type of this database."""
        return dialect.type_descriptor(String(collation="C") if dialect.name == "postgresql" else String())

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        """Return what is called for each value: nothing where text is stored as it is."""
        return super().bind_processor(dialect) if dialect.name == "postgresql" else None

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - of SQLAlchemy
        """Return the text to store: the mark is written as mark and 2, NUL as mark and 0."""
        if value is None:
            return None
        return value.replace(_MARK, f"{_MARK}2").replace(_NUL, f"{_MARK}0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the original text."""
        if value is None or dialect.name != "postgresql":
            return value
        return value.replace(f"{_MARK}0", _NUL).replace(f"{_MARK}2", _MARK)


def quantile_columns(name: str, lag: Quantiles | None) -> dict[str, int | None]:
    """Return the columns of a lag by their names."""
    return {f"{name}_{part}": getattr(lag, part) if lag else None for part in QUANTILE_FIELDS}


def digest_columns(node: NodeResult | NodeRollUp, lags: NodeLags) -> dict[str, int | bytes | None]:
    """Return the columns of a node's digests, figures and digests themselves, by their names."""
    row: dict[str, int | bytes | None] = {}
    for name in NODE_DIGESTS:
        row |= quantile_columns(name, getattr(node, name))
        row[f"{name}_digest"] = tdigest.to_bytes(getattr(lags, name))
    if not lags.displacement.count:
        row[f"{DISPLACEMENT}_digest"] = None
    return row


def count_digests(count_lags: Sequence[CountLags]) -> str:
    """Return the column of the digests of nodes that only count."""
    if not any(digest.count for of_node in count_lags for digest in of_node):
        return "[]"
    return json.dumps([[b64encode(tdigest.to_bytes(one)).decode("ascii") for one in of_node] for of_node in count_lags])


def parse_count_digests(text: str) -> tuple[CountLags, ...]:
    """Return the digests that :func:`count_digests` was given; none where all are empty."""
    return tuple(CountLags(*(tdigest.from_bytes(b64decode(one)) for one in of_node)) for of_node in json.loads(text))


def _lag(name: str) -> Iterator[Column[int]]:
    return (Column(f"{name}_{part}", BigInteger) for part in QUANTILE_FIELDS)


def _counts(*names: str) -> Iterator[Column[int]]:
    return (Column(name, BigInteger, nullable=False) for name in names)


def _node_counts() -> Iterator[Column[Any]]:
    """Yield the columns of a node that a window and a span begin with."""
    yield Column("place", Integer, primary_key=True, autoincrement=False)
    yield Column("node", ExactText(), nullable=False)
    yield from _counts("expected", "seen", "arrived", "departed", "filtered", "rejected")
    yield from _counts("lost_in_transit", "lost_inside", "lost_after", "loss", "loss_lower")
    yield Column("loss_upper", BigInteger)
    yield Column("loss_ratio", Float(53))
    yield from _counts(
        "in_flight", "unobserved", "orphans", "duplicates_in", "duplicates_out", "lag_negative", "dropped"
    )


def _node_lags() -> Iterator[Column[Any]]:
    """Yield the columns of a node's lags: figures, and the digests that they are of."""
    for name in NODE_LAGS:
        yield from _lag(name)
    yield Column("process_duration_p95_us", BigInteger)
    yield from (Column(f"{name}_digest", LargeBinary, nullable=False) for name in NODE_LAGS)


def _order() -> Iterator[Column[Any]]:
    """Yield the columns of a node's order, which most streams do not count."""
    yield Column("inversions", BigInteger, nullable=False, server_default="0")
    yield from _lag(DISPLACEMENT)
    yield Column(f"{DISPLACEMENT}_digest", LargeBinary, comment="Null where nothing was compared")


def _deferred() -> Column[int]:
    return Column("deferred", BigInteger, nullable=False, server_default="0")


def _overdue() -> Column[int]:
    return Column("overdue", BigInteger, nullable=False, server_default="0")


def _count_digests() -> Column[str]:
    text = "JSON: two digests of lags in base64 for each node of counts; empty where no lag was told"
    return Column("count_digests", Text, nullable=False, server_default="[]", comment=text)


def _window_key() -> Iterator[Column[object]]:
    yield Column("stream", ExactText(), primary_key=True)
    yield Column("window_start_us", BigInteger, primary_key=True, autoincrement=False)


meta: Final = Table(
    "meta",
    metadata,
    Column("name", ExactText(), primary_key=True),
    Column("value", Text, nullable=False),
    comment="One value a name: the query that writes here and its last batch, its rules, the watermark",
)

streams: Final = Table(
    "streams",
    metadata,
    Column("stream", ExactText(), primary_key=True),
    *_counts("first_start_us", "last_start_us"),
    comment="The first and the last window in which a plausible batch fell",
)

windows: Final = Table(
    "windows",
    metadata,
    *_window_key(),
    Column("status", String(16), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("verdict", String(16)),
    Column("reasons", Text, nullable=False),
    *_counts("known", "delivered", "filtered", "rejected", "lost", "lost_lower"),
    Column("partial", BigInteger, nullable=False, server_default="0"),
    Column("lost_upper", BigInteger),
    Column("loss_ratio", Float(53)),
    *_counts("in_flight", "recovered"),
    *_lag("lag_us"),
    Column("last_first_sighting_us", BigInteger, nullable=False),
    Column("is_settled", Boolean, nullable=False),
    Column("books", LargeBinary, nullable=False),
    Column("is_live", Boolean, nullable=False),
    _deferred(),
    Column("waits_passed_us", BigInteger, nullable=False, server_default="0"),
    Column("waits_next_us", BigInteger, nullable=False, server_default=str(NEVER_US)),
    Column("counts", Text, nullable=False, server_default="[]"),
    _count_digests(),
    _overdue(),
    Column(
        "sequence",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="Number of the write that wrote it last; a later write has a greater one",
    ),
)

Index("windows_by_sequence", windows.c.sequence, windows.c.stream, windows.c.window_start_us)

node_windows: Final = Table(
    "node_windows",
    metadata,
    *_window_key(),
    *_node_counts(),
    Column("coverage", Float(53)),
    *_node_lags(),
    Column("slowest", Text, comment="JSON: the slowest messages as they are reported; null where they were not kept"),
    _deferred(),
    *_order(),
    _overdue(),
    Column("overdue_ids", Text, comment="JSON: the first ids of what is overdue, null of nothing"),
)

lost_ids: Final = Table(
    "lost_ids",
    metadata,
    *_window_key(),
    Column("node", ExactText(), primary_key=True),
    Column("message_ids", LargeBinary, nullable=False),
    Column(
        "id_kinds",
        LargeBinary,
        comment="uint8 an id: 0 bytes, 1 UUID, 2 integer, 3 text, 4 not known, 5 a text that was left out",
    ),
    Column("id_text_ends", LargeBinary, comment="uint32 an id: where its text ends"),
    Column("id_texts", LargeBinary, comment="UTF-8, the texts laid end to end"),
    Column("journeys", LargeBinary, comment="the stamps of each message, compressed"),
    comment="16 bytes an id, in byte order, as many as max_lost_ids: a row an id would cost more than all the rest",
)

label_counts: Final = Table(
    "label_counts",
    metadata,
    *_window_key(),
    Column("node", ExactText(), primary_key=True),
    Column("counts", Text, nullable=False, comment="JSON: the counts by label as they are reported"),
)

recent_figures: Final = Table(
    "recent_figures",
    metadata,
    Column("stream", ExactText(), primary_key=True),
    Column("through_us", BigInteger, nullable=False),
    Column("nodes", Text, nullable=False, comment="JSON: what each node stamped in the span, its lags and its backlog"),
    Column("edges", Text, comment="JSON: times on the edges, null of what was written before"),
)

second_counts: Final = Table(
    "second_counts",
    metadata,
    *_window_key(),
    Column("node", ExactText(), primary_key=True),
    Column("counts", Text, nullable=False, comment="JSON: the counts by second as they are reported"),
)

path_times: Final = Table(
    "path_times",
    metadata,
    *_window_key(),
    Column("node", ExactText(), primary_key=True),
    Column("source", ExactText(), primary_key=True, comment="the node before, the node, or empty"),
    *(Column(name, BigInteger, nullable=False) for name in (*QUANTILE_FIELDS, *PATH_TIME_FIELDS)),
    comment="Times of messages on the path, in windows that are final",
)

label_values: Final = Table(
    "label_values",
    metadata,
    Column("stream", ExactText(), primary_key=True),
    Column("node", ExactText(), primary_key=True),
    Column("label", ExactText(), primary_key=True),
    Column("value", ExactText(), primary_key=True),
    *_counts("first_start_us", "last_start_us"),
    comment="The first and the last window in which a node said a value of a label; a bounded number of values a label",
)

outliers: Final = Table(
    "outliers",
    metadata,
    *_window_key(),
    Column("node", ExactText(), primary_key=True),
    Column("quantity", String(16), primary_key=True),
    *_counts("since_us"),
    Column("is_outlier", Boolean, nullable=False),
    Column("observed", Float(53), nullable=False),
    Column("low", Float(53)),
    Column("high", Float(53)),
    Column("score", Float(53), nullable=False),
    Column("reasons", Text, nullable=False),
    comment="Windows in which an episode of a series begins, or becomes an outlier",
)

outlier_states: Final = Table(
    "outlier_states",
    metadata,
    Column("stream", ExactText(), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    *_counts("before_us"),
    Column("states", LargeBinary, nullable=False),
    comment="What the detector remembers of a node's series before a whole hour; no window before it can change",
)

tallies: Final = Table(
    "tallies",
    metadata,
    *_window_key(),
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("parcel", LargeBinary, nullable=False),
    comment="What a window is judged from, as long as it can be judged again",
)

segments: Final = Table(
    "segments",
    metadata,
    Column("path", ExactText(), primary_key=True),
    *_counts("needed_until_us", "batch_id"),
    comment="Segments that windows still point into; they are deleted once nothing does",
)

books: Final = Table(
    "books",
    metadata,
    Column("stream", ExactText(), primary_key=True),
    Column("node", ExactText(), primary_key=True),
    Column("probe", ExactText(), primary_key=True),
    Column("epoch_us", BigInteger, primary_key=True, autoincrement=False),
    *_counts("first_arrival_us", "last_arrival_us", "complete_through_us", "missing_batches", "skew_us"),
    Column("said_bye", Boolean, nullable=False),
    *_counts(*TALLY_FIELDS),
    Column("runs", Text, nullable=False),
    Column("drops", Text, nullable=False),
    Column("sent", Text, nullable=False),
    Column("aside", Text, nullable=False, server_default="[]"),
    Column("unplaced", Text, nullable=False, server_default="[]"),
    Column("counted", Text, nullable=False, server_default="[]"),
    Column("lags", Text, nullable=False, server_default="[]"),
    Column("clock_low_us", BigInteger),
    Column("clock_high_us", BigInteger),
)

arrivals: Final = Table(
    "arrivals",
    metadata,
    Column("place", ExactText(), primary_key=True),
    *_counts("last_arrival_us"),
    comment="When the last record of each partition of a topic arrived, as far as it is read",
)

holes: Final = Table(
    "holes",
    metadata,
    Column("place", ExactText(), primary_key=True),
    Column("first_offset", BigInteger, primary_key=True, autoincrement=False),
    *_counts("last_offset", "after_us", "before_us"),
    comment="Records that had aged out of a partition before they were read, both ends included",
)

set_aside: Final = Table(
    "set_aside",
    metadata,
    Column("path", ExactText(), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    # An empty record may stand where the torn tail begins.
    Column("length", BigInteger, primary_key=True, autoincrement=False),
    *_counts("arrival_us"),
    Column("reason", ExactText(), nullable=False),
    Column("message", ExactText(), nullable=False),
)

revisions: Final = Table(
    "revisions",
    metadata,
    *_window_key(),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("watermark_us", BigInteger, nullable=False),
    Column("changed", Text, nullable=False),
    comment="What each revision of a final window changed: field, before and after",
)

Index("set_aside_by_arrival", set_aside.c.arrival_us)


def _span_key() -> Iterator[Column[object]]:
    yield Column("stream", ExactText(), primary_key=True)
    yield Column("span", String(8), primary_key=True)
    yield Column("start_us", BigInteger, primary_key=True, autoincrement=False)


rollups: Final = Table(
    "rollups",
    metadata,
    *_span_key(),
    *_counts("windows", "silent", "idle", "lossy", "clean", "unknown"),
    *_counts("known", "delivered", "filtered", "rejected", "lost", "lost_lower"),
    Column("partial", BigInteger, nullable=False, server_default="0"),
    Column("lost_upper", BigInteger),
    Column("loss_ratio", Float(53)),
    *_counts("in_flight", "recovered"),
    *_lag("lag_us"),
    Column("is_frozen", Boolean, nullable=False),
    Column(
        "fingerprint",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="Equal ones stand for equal figures and digests of all nodes",
    ),
    _deferred(),
    Column("counts", Text, nullable=False, server_default="[]"),
    _count_digests(),
    comment="Hours and days; frozen is what is not built again: its windows were pruned, or have lost their digests",
)
_HAS_DIGESTS: Final = (rollups.c.span == "hour") & ~rollups.c.is_frozen
Index("hours_with_digests", rollups.c.start_us, sqlite_where=_HAS_DIGESTS, postgresql_where=_HAS_DIGESTS)

node_rollups: Final = Table(
    "node_rollups",
    metadata,
    *_span_key(),
    *_node_counts(),
    *_node_lags(),
    _deferred(),
    *_order(),
    Column(
        "ends_digest",
        LargeBinary,
        comment="lag_out of the minutes in which the node ended the pathway; empty where that is all of its lag_out",
    ),
)

stale_hours: Final = Table(
    "stale_hours",
    metadata,
    Column("stream", ExactText(), primary_key=True),
    Column("start_us", BigInteger, primary_key=True, autoincrement=False),
    comment="Hours of which a window was written since they were rolled up, or that never were",
)

pruned_set_aside: Final = Table(
    "pruned_set_aside",
    metadata,
    Column("reason", ExactText(), primary_key=True),
    *_counts("records"),
    comment="How many records set aside were pruned, by reason: the accounts go on counting them",
)

undeclared: Final = Table(
    "undeclared",
    metadata,
    Column("reason", ExactText(), primary_key=True),
    Column("stream", ExactText(), primary_key=True),
    Column("node", ExactText(), primary_key=True),
    Column("probe", ExactText(), nullable=False),
    Column("epoch_us", BigInteger, nullable=False),
    Column("nearest", ExactText(), nullable=False),
    *_counts("records", "first_arrival_us", "last_arrival_us"),
    comment="Records that were set aside for a name that is not declared, by name, with the newest probe",
)

alert_states: Final = Table(
    "alert_states",
    metadata,
    Column("rule", ExactText(), primary_key=True),
    Column("severity", String(8), primary_key=True),
    Column("stream", ExactText(), primary_key=True),
    Column("node", ExactText(), primary_key=True),
    Column("phase", String(8), nullable=False),
    *_counts("since_us"),
    Column("told_as", ExactText(), nullable=False),
    Column("state", Text, nullable=False),
    comment="Alerts that are bad, or were so lately; of what is well there is no row",
)

alert_incidents: Final = Table(
    "alert_incidents",
    metadata,
    Column("key", ExactText(), primary_key=True),
    *_counts("opened_us"),
    Column("incident", Text, nullable=False),
    Column("notification", Text, nullable=False),
    comment="Incidents that are open, and what they say now",
)

alert_history: Final = Table(
    "alert_history",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("key", ExactText(), nullable=False),
    Column("event", String(8), nullable=False),
    *_counts("at_us"),
    Column("notification", Text, nullable=False),
    comment="All that was ever to be told, numbered",
)

alert_outbox: Final = Table(
    "alert_outbox",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("channel", ExactText(), primary_key=True),
    Column("key", ExactText(), nullable=False),
    Column("event", String(8), nullable=False),
    Column("state", String(16), nullable=False),
    *_counts("created_us", "next_try_us", "tries", "told_us"),
    Column("last_error", ExactText(), nullable=False),
    comment="One row a notification and channel: what is to be sent, and what has become of it",
)

alert_acknowledgements: Final = Table(
    "alert_acknowledgements",
    metadata,
    Column("key", ExactText(), primary_key=True),
    *_counts("opened_us", "at_us"),
    Column("by", ExactText(), nullable=False),
    Column("note", ExactText(), nullable=False),
    comment="Who has taken on which incident, known by its key and when it was opened",
)

alert_silences: Final = Table(
    "alert_silences",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("target", ExactText(), nullable=False),
    *_counts("from_us", "until_us"),
    Column("by", ExactText(), nullable=False),
    Column("why", ExactText(), nullable=False),
    comment="Spans in which notifications of an incident, a stream or all are held back",
)

markers: Final = Table(
    "markers",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    *_counts("at_us"),
    Column("stream", ExactText(), nullable=False),
    Column("text", ExactText(), nullable=False),
    Column("labels", ExactText(), nullable=False),
    Column("by", ExactText(), nullable=False),
    comment="Moments that people and programs have marked, such as a deploy; an empty stream is all streams",
)

pathway_versions: Final = Table(
    "pathway_versions",
    metadata,
    Column("stream", ExactText(), primary_key=True),
    Column("valid_from_us", BigInteger, primary_key=True, autoincrement=False),
    *_counts("registered_us"),
    Column("config", Text, nullable=False),
    comment="Versions of the streams' paths and terms, each valid for windows that start at a minute or later",
)

told_spans: Final = Table(
    "told_spans",
    metadata,
    Column("contract", ExactText(), primary_key=True),
    Column("until_us", BigInteger, primary_key=True, autoincrement=False),
    Column("state", String(16), nullable=False),
    *_counts("revisions", "known", "lost_lower"),
    Column("lost_upper", BigInteger),
    *_counts("in_flight", "told_us"),
    comment="What the webhook of a contract was told last of each span; pending where it was told nothing yet",
)

selftest_minutes: Final = Table(
    "selftest_minutes",
    metadata,
    Column("window_start_us", BigInteger, primary_key=True, autoincrement=False),
    Column("injected", Text, nullable=False),
    Column("is_exact", Boolean, nullable=False),
    Column("checked_us", BigInteger),
    Column("is_failed", Boolean, nullable=False, default=False),
    *(Column(name, BigInteger, nullable=False, default=0) for name in ("lost", "found", "false")),
    Column("problems", Text, nullable=False, default="[]"),
    comment="Minutes of the self-test: what was injected, and the outcome once its window was compared with that",
)

objective_minutes: Final = Table(
    "objective_minutes",
    metadata,
    Column("stream", ExactText(), primary_key=True),
    Column("objective", ExactText(), primary_key=True),
    Column("window_start_us", BigInteger, primary_key=True, autoincrement=False),
    *_counts("total", "bad"),
    comment="What each window adds to an objective; one that says nothing has no row",
)

_BAD: Final = objective_minutes.c.bad > 0
_KEY: Final = tuple(objective_minutes.primary_key)

Index("objective_minutes_bad", *_KEY, sqlite_where=_BAD, postgresql_where=_BAD)
Index("alert_history_by_key", alert_history.c.key, alert_history.c.number)
Index("alert_outbox_by_key", alert_outbox.c.key, alert_outbox.c.channel)
Index("alert_history_by_time", alert_history.c.at_us)
Index("alert_outbox_by_state", alert_outbox.c.state, alert_outbox.c.next_try_us)
Index("outliers_by_series", outliers.c.stream, outliers.c.is_outlier, outliers.c.window_start_us)

schemas: Final = Table(
    "schemas",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("fingerprint", LargeBinary, nullable=False, unique=True),
    Column("text", Text, nullable=False),
    comment="Avro schemas that were registered; none ever changes or goes",
)

subject_versions: Final = Table(
    "subject_versions",
    metadata,
    Column("subject", ExactText(), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    *_counts("schema_number", "registered_us"),
)

subject_levels: Final = Table(
    "subject_levels",
    metadata,
    Column("subject", ExactText(), primary_key=True),
    Column("level", String(24), nullable=False),
    comment="What the versions of a subject owe each other; the empty name stands for all others",
)
