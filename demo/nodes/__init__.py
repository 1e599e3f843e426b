"""The processes of the demo: four nodes, and the sender before the gate."""
