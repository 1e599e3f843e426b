"""Property tests: laws that hold for every input; hypothesis writes the cases."""
