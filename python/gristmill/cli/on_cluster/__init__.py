"""A command line whose job runs on other machines: what its words and its streams are there."""
