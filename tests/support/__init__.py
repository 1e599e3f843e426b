"""Helpers that tests of more than one folder share; each module is named by what it makes."""
