"""MapReduce of Python functions: `gm.Job`, `gm.text`, `gm.sum` and so on.

formats  text, fixed, delimited, tsv, jsonl, csv, parquet, arrow, kv, items
job      Job ─▶ launching ─▶ engine, workers ─▶ running: mapping, reducing ─▶ Result
check    naive (the same job, simply) and checking (is the output a function of the input?)
"""
