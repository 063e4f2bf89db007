"""The terminal: what is written and drawn there, and the signals that come from it."""
