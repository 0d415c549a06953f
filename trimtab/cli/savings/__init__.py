"""`trimtab savings`: what removed nodes saved, by pool and by team."""
