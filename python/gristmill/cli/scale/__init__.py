"""`gristmill scale`: how speed goes with the number of processors.

    command   the group          fit    runs of a file ──▶ the law, in words, as JSON, as pictures
    text      a fit for people   run    runs of a job with each p ──▶ runs.jsonl ──▶ fit

Nothing of the extra `gristmill[analysis]` is imported before a command needs it.
"""
