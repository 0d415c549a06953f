"""The serving certificate: issue, due, renew, watch a folder. A leaf: knows nothing of the rest."""
