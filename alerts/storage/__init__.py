"""Alerts in the store: states, outbox, history, retention and figures for metrics."""
