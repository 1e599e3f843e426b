"""What the monitor tells Prometheus: values, then samples, then a page; strictly one way."""
