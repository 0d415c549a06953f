"""What is asked of a cluster, one subject per file. Pure: a `Seen` in, findings out."""
