"""Taps: programs beside a service that stamp what passes it, for services that nobody wants to touch.

Each reads a source that keeps what it holds (a file, a topic) or is told by others (HTTP), and stamps with a plain
:class:`probes.Probe`. What was stamped after the last saved position is stamped again after a crash: at least once.
"""
