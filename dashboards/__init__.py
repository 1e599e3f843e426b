"""Dashboard and HTML report: the monitor's results as pages, read from the store."""
