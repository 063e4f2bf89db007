"""The command line: commands, what their words mean and what they show, put together in `program`.

    main ──▶ program ──▶ generated (one command for each of the engine's) ──▶ runner ──▶ job.py
      │              └─▶ demo/                                                       │  │
      └── signals, failures, console                                    progress ◀───┘  └──▶ summary

The data's figures go to stdout, everything about how things go to stderr. Exit codes: 0 done, 1 the
job failed, 2 the command line is wrong, 128 + n ended by signal n. What is slow to import (rich) is
imported where it is used.
"""
