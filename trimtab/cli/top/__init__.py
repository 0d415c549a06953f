"""`trimtab top`: pools and nodes, live; nothing is changed."""
