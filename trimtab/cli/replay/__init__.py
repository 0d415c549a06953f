"""The `replay` verb: what recorded days would have cost with other settings."""
