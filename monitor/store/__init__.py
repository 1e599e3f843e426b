"""Where conclusions are kept: one SQL database, written in one transaction a micro-batch, read by everybody else."""
