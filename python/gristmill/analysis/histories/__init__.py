"""Runs of the histories of jobs, of Gristmill and of Hadoop, for the law of scaling.

    names ──find──▶ files ─┬─ events.jsonl ──history.load──▶ to_runs ─┬──▶ Run
    (id, folder, file)     └─ .jhist ───────────jhist────────────────┘

    losses     what each run lost, in seconds of its wall time, told from its history alone
    causes     which of these losses explains how the runs scale

A job that cannot be compared (killed, still running, resumed, cut short, damaged, of another
command) is refused with its name where it was named itself. Of a folder or a command it is left
out, and a line says so.
"""

from gristmill.analysis.histories.causes import Cause, cause_of
from gristmill.analysis.histories.find import is_history
from gristmill.analysis.histories.losses import LOSSES, losses
from gristmill.analysis.histories.recorded import runs_of

__all__ = ["LOSSES", "Cause", "cause_of", "is_history", "losses", "runs_of"]
