"""Redrive: messages that are lost at a node are found in the topic before it, and sent again."""
