"""HTTP tap: for services in any language, and for probes that cannot reach a transport themselves."""
