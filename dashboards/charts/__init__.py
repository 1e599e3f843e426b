"""Chart specifications for the browser, built from data points."""
