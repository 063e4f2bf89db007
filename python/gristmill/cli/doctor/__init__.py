"""`gristmill doctor`: whether jobs can run here, or on a cluster, before the first one does.

    command ──▶ gristmill.cluster.node_checks: what is found of this machine, or of each node
            ──▶ findings: all of it ──▶ verdicts, one function for each kind of check
            ──▶ table: a line for nodes that are alike, what to do for those that are not; or JSON

No verdict asks a node, and no question judges.
"""
