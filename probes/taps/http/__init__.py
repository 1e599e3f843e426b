"""The tap that is told by HTTP: for services in any language, and for probes that reach no transport themselves."""
