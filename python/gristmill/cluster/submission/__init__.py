"""A command that runs on the head of a Ray cluster: submitted through the dashboard, and followed.

    this machine                              the head of the cluster
    command line ─▶ package ──HTTP──▶ dashboard ─▶ Ray job: on_head.py ─▶ driver.py: the command
    what it says ◀─ following ◀─────── its log, each line with a mark ◀──────┘

The driver of a submitted job is on the head, and so is the history. This machine needs no Ray: the
dashboard has a REST interface (docs.ray.io, "Ray Jobs REST API"), which is asked here.
"""
