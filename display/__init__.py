"""Texts of figures, units, colours and loss tables, shared by commands, pages, reports and alerts: pure."""
