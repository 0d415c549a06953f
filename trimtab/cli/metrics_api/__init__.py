"""The `metrics-api` verb: it runs the process, checks its rules, and proposes an HPA."""
