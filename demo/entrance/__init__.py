"""The demo's entrance through the gate: a sender sends events, and ingest takes those that the gate accepted.

    sender ──JSON──► hopwatch gate ──Avro──► spool or topic ──► ingest ──► …

``events.py`` has the event and its schema, ``event_sender.py`` the sender, which sends by ``hopwatch.client`` as any
producer would; the inlets in ``links/`` read the accepted
events for ingest.
"""
