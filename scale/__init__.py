"""Scaling of the processes of a command, by the rules of the Kubernetes HorizontalPodAutoscaler."""
