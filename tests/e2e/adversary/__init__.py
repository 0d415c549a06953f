"""Nobody with small rights can stop, fool or steer Trimtab: each "must not get" of the threat model, tried."""
