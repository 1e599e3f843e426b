"""A small real pipeline to watch Hopwatch at work: flights of New York pass four processes, with faults on demand.

    ingest ──► router ──► norm ──► connector          (demo/nodes/, one file a process)

Start reading at ``run.py``, which tells the whole story; ``nodes/step.py`` shows where a probe goes in a service.
"""
