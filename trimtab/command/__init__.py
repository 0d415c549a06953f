"""The command: one file per verb."""
