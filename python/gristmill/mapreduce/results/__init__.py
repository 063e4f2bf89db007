"""What has become of a job: its output as it can be read, or what it failed at, for its user."""
