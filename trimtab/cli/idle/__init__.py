"""`trimtab idle`: what could sleep, what is mostly empty, and what no pod names."""
