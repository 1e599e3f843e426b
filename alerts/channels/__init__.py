"""Notification channels, one file per kind, behind one interface: send a notification, return the outcome."""
