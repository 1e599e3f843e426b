"""Sources of records: a spool of segments, and a Kafka topic."""
