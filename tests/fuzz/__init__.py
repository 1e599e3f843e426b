"""What strangers send, made up by atheris: each target runs in a process of its own, which a crash may take with it."""
