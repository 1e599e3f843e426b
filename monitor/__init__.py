"""The monitor: reads what probes say, and concludes for each window and node what was lost and how late it was."""
