"""Accounts of probe instances and windows: the ledger, and gaps in what was received."""
