"""Probes: the library that a service embeds to report its messages: which ones, when they arrived, when they left."""

from hopwatch.probes.probe import Probe

__all__ = ["Probe"]
