"""The real servers, each as a thing that starts, stops and can be killed."""
