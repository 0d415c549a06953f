"""The `pools` verb: it checks pools, and converts the configuration of another compactor to pools of Trimtab."""
