"""One file a page: it asks, lets a view decide, and draws."""
