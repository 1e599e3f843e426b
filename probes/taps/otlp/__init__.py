"""The OTLP tap: stamps of messages from the spans of services that OpenTelemetry traces."""
