"""Tests of the texts that commands, pages, reports and alerts share."""
