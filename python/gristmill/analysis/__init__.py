"""Repeated measurements, and what they say: benchmarks, comparisons, and the law of scaling.

    bench/       runs jobs again and again, and tells what they took
    scale/       fits the Universal Scalability Law to runs with 1, 2, 4, … workers
    histories/   makes such runs of the histories of jobs, Hadoop's too

All of it needs the extra `gristmill[analysis]`.
"""
