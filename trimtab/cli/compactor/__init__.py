"""The `compactor` verb: it runs the process, shows its state, and pauses, resumes and releases."""
