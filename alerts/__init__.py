"""Alerts: from final windows to what a person is told. Nothing below knows of it."""
