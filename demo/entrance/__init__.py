"""The demo's entrance where it is the gate: a sender posts events, ingest takes those that were let in.

    sender ──JSON──► hopwatch gate ──Avro──► spool or topic ──► ingest ──► …

``events.py`` has the event and its schema, ``sending.py`` what the sender does, ``segments.py`` and ``marked.py`` how
ingest comes to what the gate let in.
"""
