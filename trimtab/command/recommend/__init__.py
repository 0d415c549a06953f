"""`trimtab recommend`."""
