"""`trimtab compactor`: the process, and what people ask of it and tell it."""
