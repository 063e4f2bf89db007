"""What words of GNU sort, GNU grep and ripgrep mean, and what to do without those that we lack."""
