"""The store: one SQL database with all results, written in one transaction per micro-batch."""
