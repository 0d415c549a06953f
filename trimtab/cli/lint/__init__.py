"""`trimtab lint`: read the objects, run the rules, and write findings, patches and baselines."""
