"""Speed of deliveries from a topic to an HTTP receiver, beside other programs that do it."""
