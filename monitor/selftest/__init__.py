"""Self-test: a stream of the monitor's own, whose losses, duplicates and lags are known because they were injected."""
