"""docker-compose.yml and Dockerfile, read as Docker reads them, and the rules that hold them against the program."""
