"""The terminal: what is written and drawn there, its signals, and an exit when a mount hangs."""
