"""`trimtab drain`."""
