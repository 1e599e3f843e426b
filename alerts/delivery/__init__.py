"""Delivery of notifications: dispatcher, workers, retry policy, threads and the test notification."""
