"""Hadoop Streaming's command line, and what it means here.

words ─parse─▶ Arguments ─mean─▶ Meaning ─launch─▶ the engine's job, native between scripts
          └─ options.py, properties.py: the tables that help and docs/streaming.md follow
"""
