"""Contract between probes and the monitor: the record, its envelope, its limits, message ids and spool segments.

Pure: values in, values out; no clock, no environment, no input or output.
"""
