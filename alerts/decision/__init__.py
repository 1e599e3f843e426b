"""Evaluation of alert rules: readings, episodes, incidents and summaries. Pure."""
