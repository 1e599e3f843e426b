"""Alerts: evaluate rules on final windows, keep incidents and deliver notifications; no lower package imports this."""
