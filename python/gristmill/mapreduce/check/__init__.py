"""Whether a job's output is a function of its input: it is done again, simply, and compared."""
