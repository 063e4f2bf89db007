"""`gristmill bench`: runs, compares and draws benchmarks; the work is in gristmill.analysis.bench."""
