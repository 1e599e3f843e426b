"""Marking of messages for any client: see :mod:`hopwatch.probes.integrations.message_marker`."""

from hopwatch.probes.integrations.message_marker import MessageMarker

__all__ = ["MessageMarker"]
