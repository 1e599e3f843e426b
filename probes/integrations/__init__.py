"""Integrations: stamps for the clients that services use already, one client a file."""
