"""Hadoop Streaming's command line, and what it means here.

words ─parse─▶ Arguments ─resolve─▶ ResolvedJob ─launch─▶ the engine's job
          └─ options.py, properties.py: the tables that help and docs/streaming.md follow
"""
