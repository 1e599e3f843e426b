"""A small real pipeline to watch Hopwatch at work: flights of New York pass four processes, with faults on demand.

    ingest ──► router ──► norm ──► connector          (demo/nodes/, one file a process)

``service/`` is another one: the gate, two nodes in transactions over Kafka, and deliveries to receivers that fail.

Start reading at ``run.py``, which tells the whole story; ``nodes/step.py`` shows where a probe goes in a service.
"""
