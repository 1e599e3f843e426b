"""Results of windows as metrics of OpenTelemetry."""
