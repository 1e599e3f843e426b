"""The slow, obvious reference: spool in, report out, written from the pages that define Hopwatch alone."""
