"""Startup of a tap: opens its probe and its sink strictly, so that a mistake ends it before it reads anything."""

from __future__ import annotations

from hopwatch import Probe
from hopwatch.probes.clock import Clock
from hopwatch.probes.environment import SINK_VARIABLE, read_sink_url
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.sinks import Sink, SinkOpener, check_sink, open_sink
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapError, TapSourceError, TapUsageError


def find_sink_url(sink: str | None) -> str:
    """Return the sink that was asked for, or that of the environment.

    Raises:
        TapUsageError: there is none.
    """
    url = sink or read_sink_url()
    if not url:
        raise TapUsageError(f"there is no sink: name one with --sink, such as spool:./var/spool, or in {SINK_VARIABLE}")
    return url


def open_checked_sink(url: str, instance: str, clock: Clock) -> Sink:
    """Return the sink behind a URL, which takes records.

    Raises:
        TapUsageError: the URL cannot be.
        TapSourceError: nothing can be written there.
    """
    try:
        sink = open_sink(url, instance, clock)
        check_sink(sink)
    except ValueError as error:
        raise TapUsageError(f"--sink: {error}") from None
    except OSError as error:
        raise TapSourceError(f"the sink {url} cannot be written: {error}: see to it and start again") from None
    return sink


def open_probe(
    stream: str, node: str, sink: str | None, around: RunContext, *, id_text: bool = True
) -> tuple[Probe, BlockingSink]:
    """Return the probe of a tap that follows a source, and its sink, which waits until the tap is to stop.

    Raises:
        TapUsageError: stream, node or sink cannot be.
        TapSourceError: the sink cannot be written.
    """
    url, opened = find_sink_url(sink), list[BlockingSink]()

    def open_patient(instance: str) -> BlockingSink:
        opened.append(BlockingSink(open_checked_sink(url, instance, around.clock), around))
        return opened[-1]

    try:
        # Strict while it starts, so that a mistake ends the tap; later on what is bad is counted and not raised.
        probe = Probe(
            stream, node, SinkOpener(open_patient), strict=True, follows=True, id_text=id_text, max_age_s=None,
            close_on_sigterm=False, clock=around.clock,
        )  # fmt: skip
    except ProbeError as error:
        if isinstance(error.__cause__, TapError):
            raise error.__cause__ from None
        raise TapUsageError(str(error)) from None
    probe.strict = False
    return probe, opened[-1]
