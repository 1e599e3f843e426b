"""Delivery of a topic's messages to HTTP receivers, with retries."""
