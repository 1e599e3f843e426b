"""What holds for every input; hypothesis writes the cases."""
