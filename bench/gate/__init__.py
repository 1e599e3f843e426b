"""How fast the gate is, what its validation costs, and what clients that mean no good cost the others."""
