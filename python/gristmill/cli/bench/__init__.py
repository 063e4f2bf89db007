"""`gristmill bench`: runs, compares, draws benchmarks; gristmill.analysis.bench does the work."""
