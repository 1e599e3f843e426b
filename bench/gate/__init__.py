"""Speed of the gate, cost of its validation, and cost of hostile clients to the others."""
