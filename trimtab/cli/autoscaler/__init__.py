"""`trimtab autoscaler`: replay the cluster autoscaler on snapshots and history, and propose its flags."""
