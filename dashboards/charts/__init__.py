"""From points to the specifications that the browser draws."""
