"""What commands show to people: summaries of jobs, what held them back, nodes, the overview."""
