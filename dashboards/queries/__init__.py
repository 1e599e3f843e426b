"""The one place that asks the store: questions, what they answer, and the answers that are kept."""
