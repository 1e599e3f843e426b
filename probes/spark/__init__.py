"""Probe of a PySpark job: tasks read ids and event times, the driver sends them once their micro-batch is done."""
