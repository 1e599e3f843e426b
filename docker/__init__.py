"""Files that make the image, and those that docker-compose.yml mounts."""
