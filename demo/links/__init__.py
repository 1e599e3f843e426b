"""The links between the nodes, two kinds behind the seam of ``link.py``, and those of the service.

    sockets.py            loopback TCP: a message arrives at most once, a killed node loses what it held
    topics.py             Kafka: a message arrives at least once, a killed node loses nothing and repeats some
    transactions.py       Kafka: a message passes exactly once, between two nodes of the service
    gate_spool_inlet.py   events that the gate accepted, by its spool
    gate_topic_inlet.py   events that the gate accepted, by its topic

``run_links.py`` keeps the links of a run, and tells each process of its own two by ``ends.py``.
"""
