"""A command that runs on the head of a Ray cluster: submitted through the dashboard, and followed.

    this machine                              the head of the cluster
    command line ─▶ package ──HTTP──▶ dashboard ─▶ Ray job: on_head.py ─▶ cli/on_head.py: command
    its output ◀─── following ◀─────── the log, each line with a mark ◀──────┘

The driver of a submitted job runs on the head, and its history is there. This machine does not need
Ray: it calls the dashboard's REST API (docs.ray.io, "Ray Jobs REST API").
"""
