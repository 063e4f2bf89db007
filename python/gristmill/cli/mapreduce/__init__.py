"""The commands `run` and `check`: jobs of people's own functions, from files that define them."""
