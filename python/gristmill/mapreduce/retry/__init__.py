"""One record or task again, alone and in this process: what failed, or what the user names."""
