"""Lookup of single messages: their stamps, fates and losses."""
