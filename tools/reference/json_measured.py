"""The part of json.md on commands that measure: grep's summary, bench, scale."""

__all__ = [
    "BENCH",
    "CAUSE",
    "COMPARE",
    "COMPARISON",
    "ESTIMATE",
    "FIGURES",
    "FIT",
    "GREP",
    "RULE",
    "SUMMARY",
]

GREP = {
    "files": "Files that were searched.",
    "bytes": "Their bytes, as they were searched: decompressed.",
    "lines": "Lines that were selected.",
    "unreadable": "Files that could not be read.",
    "seconds": "From beginning to end.",
}
BENCH = {
    "asked": "The suite and its options.",
    "machine": "The machine: processors, memory, kernel, device.",
    "versions": "Versions of Gristmill, Python, and what the suite uses.",
    "began": "When the first round began (ISO 8601, UTC).",
    "figures": "An entry for each step and configuration.",
}
FIGURES = {
    "config": "The options that were varied, with the values of this entry.",
    "step": "The step of the suite, such as `terasort`.",
    "bytes": "Of the input or the output, whichever is more.",
    "seconds": "From the start of the process to its exit.",
    "phases": "The phases of its jobs: `name`, `seconds`, `cpu_s_per_gb`, and under `kinds` CPU "
    "seconds per GB by kind of work.",
}
"""An entry of `figures`, but for the figures that not every step has."""
SUMMARY = {
    "n": "Runs that count.",
    "mean": "Their mean.",
    "stderr": "Its standard error; `null` of one run.",
    "relative_percent": "The standard error in percent of the mean.",
    "median": "Their median.",
    "low": "The lower end of the 95 % interval of the mean; `null` of one run.",
    "high": "Its upper end.",
}
RULE = {
    "category": "A category of the sort benchmark.",
    "would_count": "Whether the best run would count in it.",
    "rules": "Its rules: `text`, `kept` (`null` where the runs do not tell), and what was `found`.",
}
COMPARE = {
    "comparisons": "An entry for each step that both have.",
    "differences": "What else differs between the two, in words.",
    "tolerance_percent": "What was given as `--tolerance`.",
    "slower_beyond_tolerance": "Whether a step is slower by more: then the exit code is 1.",
}
COMPARISON = {
    "config": "The configuration.",
    "step": "The step.",
    "n": "Runs of the first and of the second.",
    "seconds": "Their means.",
    "ratio": "The second's time, divided by the first's.",
    "low": "The lower end of its interval; `null` where there are too few runs.",
    "high": "Its upper end.",
    "paired": "Whether runs that were interleaved were compared in pairs.",
    "verdict": "Of the second: `faster`, `slower`, `no difference`, `too few runs`.",
}
FIT = {
    "gamma": "Throughput of one processor, or its inverse for times.",
    "sigma": "Contention. Below 0: superlinear.",
    "kappa": "Coherency: what each pair of processors costs.",
    "peak_p": "Where the speedup is greatest.",
    "peak_speedup": "The speedup there.",
    "crossover_p": "Where a superlinear speedup is linear again.",
    "ceiling": "The speedup that no p exceeds, where kappa is 0.",
    "verdict": "`superlinear`, `linear`, `contention`, `coherency`, `fixed rate`, `no law`; or"
    " `refused`, with `reason`, where the data cannot carry a law.",
    "sentences": "The verdict in words.",
    "scaling": "Strong scaling (the same work for every p) or weak (the same for each processor).",
    "measured": "`seconds` or `throughput`.",
    "errors": "Whether runs were weighted by `relative` or `absolute` errors.",
    "level": "That of the intervals, such as 0.95.",
    "unit": "The work that seconds are of.",
    "runs": "Runs that were fitted.",
    "dof": "Degrees of freedom of the errors.",
    "relative_error": "The spread of single runs around the curve, as a share of it.",
    "r_squared": "Of the means. It flatters every curve that is not a line.",
    "valid": "Whether the curve is positive and finite wherever it is drawn.",
    "bootstraps": "Bootstraps that the intervals under `bootstrap` come from.",
    "points": "An entry for each p: runs, mean, errors, the curve and its band, residual.",
    "checks": "Questions to the residuals: `name`, `ok`, `says`, `p_value`.",
    "models": "This law, Amdahl's, a line, and a speed that is flat from some p on, by AICc.",
    "amdahl": "`sigma` and `ceiling` of Amdahl's law, which a verdict of contention quotes.",
    "hold_out": "The largest p, predicted from all others; `null` where that cannot be.",
    "phases": "What each phase adds to sigma and kappa.",
}
"""`cause` and `loss` come after it where the runs have columns of wastes."""
ESTIMATE = {
    "value": "The figure; `null` where there is none.",
    "stderr": "Its standard error.",
    "low": "The lower end of its t interval; `null` where the data do not bound it.",
    "high": "The upper end.",
    "bootstrap": "The bootstrap interval.",
}
CAUSE = {
    "outcome": "`not superlinear`, `explained`, `partly explained`, `not explained`, `unknown`.",
    "cause": "The waste that explains most.",
    "sentences": "That in words.",
    "sigma": "Sigma of the runs.",
    "sigma_without_wastes": "Sigma of their times without all wastes.",
    "wastes": "An entry for each waste: its share of the time at each p, what sigma is without it.",
    "times": "p, mean seconds, mean seconds without all wastes.",
}
