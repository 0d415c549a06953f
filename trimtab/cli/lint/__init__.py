"""The `lint` verb: it reads objects, runs the rules, and writes findings, patches and baselines."""
