"""Little pipelines of real processes, one replica of which comes to a bad end; and what really became of messages."""
