"""Hadoop's history files: a `.jhist` becomes a run.

file ──events──▶ (type, fields)… ──job──▶ a Run, or why there is none
"""

from gristmill.analysis.histories.jhist.job import read_jhist

__all__ = ["read_jhist"]
