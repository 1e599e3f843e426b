"""Pages, one module each: a page runs a query, builds a view and draws it."""
