"""Kafka clients: what all of Hopwatch's producers and consumers share; a probe imports it without the client itself."""
