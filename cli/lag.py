"""``hopwatch lag``: lag of the consumer groups of nodes, by partition, beside the backlog that stamps tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.table import Table

from hopwatch.cli.configuration import DEFAULT_CONFIG, AsJson, Config, load_streams
from hopwatch.cli.console import emit_json, stdout
from hopwatch.cli.wide_tables import print_wide_table
from hopwatch.display.consumer_lag import LAG_COLUMNS, build_lag_rows, describe_lag
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.group_lag import GroupLag
from hopwatch.monitor.lookup.consumer_lag import read_group_lags
from hopwatch.monitor.results import RecentNode
from hopwatch.monitor.store import dialect, recent_figures, schema
from hopwatch.monitor.texts.escaping import escape_line

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings


class _StreamLags(NamedTuple):
    """Lags of the groups of a stream, and the recent figures of its nodes, by node, where there are any."""

    stream: str
    groups: list[GroupLag]
    nodes: dict[str, RecentNode]

    def to_json(self) -> dict[str, Any]:
        return {"stream": self.stream, "groups": [self._group_to_json(one) for one in self.groups]}

    def _group_to_json(self, group: GroupLag) -> dict[str, Any]:
        node = self.nodes.get(group.node)
        told = {"backlog": node.backlog, "backlog_s": node.backlog_s} if node else {"backlog": None, "backlog_s": None}
        return group.to_json() | told


def command(
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str | None, typer.Option("--stream", help="Only this stream.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show the lag of consumer groups by partition.

    Of the groups that the configuration names in groups of a stream, in the topics of the nodes before them. Beside it
    is the backlog of the node by its stamps, in messages and in time.
    """
    settings = load_streams(config)
    settings.check_stream(stream)
    named = [one for one in settings.streams if (stream in {None, one}) and settings.streams[one].groups]
    if not named:
        what = "no stream has a consumer group" if stream is None else f"the stream {stream!r} has no consumer group"
        advice = 'groups = { NODE = "GROUP" } beside topics = { NODE_BEFORE = "kafka://HOST:PORT/TOPIC" }'
        raise ConfigurationError(f"{what}: name it in [streams.{stream or 'NAME'}] by {advice}")
    found = [_StreamLags(one, list(read_group_lags(settings, one)), _read_nodes(settings, one)) for one in named]
    if as_json:
        emit_json({"streams": [one.to_json() for one in found]})
        return
    for one in found:
        for group in one.groups:
            told = describe_lag(group, one.nodes.get(group.node))
            stdout().print(escape_line(f"{one.stream}: {told}"), soft_wrap=True)
            table = Table()
            for name in LAG_COLUMNS:
                table.add_column(name, justify="right")
            for row in build_lag_rows(group):
                table.add_row(*row)
            print_wide_table(stdout(), table)


def _read_nodes(settings: Settings, stream: str) -> dict[str, RecentNode]:
    """Return the recent figures of the nodes of a stream, none where they do not say how things are now."""
    if not schema.has_store(settings.store.url):
        return {}
    engine = dialect.create_engine(settings.store.url)
    try:
        with schema.open_snapshot(engine) as connection:
            recent = recent_figures.read_recent(connection, stream)
    finally:
        engine.dispose()
    if recent is None or recent.is_old(SystemClock().now_us()):
        return {}
    return {node.node: node for node in recent.nodes}
