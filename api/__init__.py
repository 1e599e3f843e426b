"""Query API: the results of a store by HTTP, read-only, for programs."""
