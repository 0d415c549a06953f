"""The `pools` verb: it converts the configuration of another compactor to pools of Trimtab."""
