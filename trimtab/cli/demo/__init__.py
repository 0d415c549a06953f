"""The `demo` verb: admission by the real webhook, a plan and a compaction on this machine, without a cluster."""
