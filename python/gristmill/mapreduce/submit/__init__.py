"""What runs at the driver: a job is loaded, planned, explained, begun, and waited for.

job, run_all ─▶ launching ─▶ preparing: splits, functions ─▶ submitting: the engine ─▶ results
"""
