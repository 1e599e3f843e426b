"""Tables as ends of a stream: the messages that each snapshot of a table has brought, as batches of its own.

A snapshot is a probe instance, named after table and snapshot, whose batches are numbered in the order of its files and
rows: whoever reads it, and however often, sends the same records, of which a monitor counts the first.
"""
