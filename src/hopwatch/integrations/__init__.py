"""Stamps around the clients that services use, one client a module."""
