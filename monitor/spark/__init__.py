"""The job: Spark reads, decodes, keeps the state of windows and hands every micro-batch to the store."""
