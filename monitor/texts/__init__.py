"""Plain sentences and formats that reports, pages and errors share."""
