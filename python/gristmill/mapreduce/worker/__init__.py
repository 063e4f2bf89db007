"""What runs in worker processes, on this machine and on agents: a task of a job, to its report."""
