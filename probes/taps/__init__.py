"""Taps: sidecar programs that stamp the messages of a service without changes to its code.

A tap reads a durable source (a file, a topic) or receives observations by HTTP, and stamps with a plain
:class:`hopwatch.Probe`. After a crash it stamps again what came after the last saved position: at least once.
"""
