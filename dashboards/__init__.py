"""What an SRE keeps open: the monitor's conclusions as pages, read from the store."""
