"""How the store's tables came to be, version by version; run by :mod:`monitor.store.schema` alone."""
