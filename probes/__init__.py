"""Probes: what a service embeds to say which messages it saw, when they came and when they left."""

from hopwatch.probes.probe import Probe

__all__ = ["Probe"]
