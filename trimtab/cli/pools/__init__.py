"""`trimtab pools`: what others were told about node pools, as pools of ours."""
