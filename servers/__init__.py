"""The real servers that tests and benches start, each as a thing that starts, stops and can be killed."""
