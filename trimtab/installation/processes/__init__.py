"""One file for each process: its permissions, what they are for, what it may change, and its own manifests."""
