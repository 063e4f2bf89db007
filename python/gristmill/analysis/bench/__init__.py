"""Benchmarks: jobs run again and again, and what they say with their errors.

    suites/        what is run: a file each, with its line in SUITES
    bench_request  what was asked for, and a configuration of it
    order          which run comes when: rounds, in which configurations take turns
    launching      one run: a process of its own, with the clock outside of it
    session        goes through the rounds, and writes each run into a folder of results
    results        that folder: machine.json and runs.jsonl
    figures        runs ──▶ figures with their errors (statistics, floor, prices)
    comparing      two results ──▶ faster, slower or no difference
    rules          for which category of the sort benchmark a run would count
    page/          all of it as one HTML file

While a run is measured, this process sleeps in `wait4`: it adds nothing but its start.
"""
