"""The commands `run` and `check`: jobs of Python functions, from files that define them."""
