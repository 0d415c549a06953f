"""Files or a cluster in, values out: what commands read. Nothing here parses the command line or prints.

command_faults,        why a command cannot go on; what is being read, for who waits
live_cluster           reads a live cluster instead of a file
plan_inputs, pools,    all inputs of a plan
planned_requests,
measured_use, …
usage_sources          usage from files, Prometheus and other sources
current_requests       the present requests of all containers
compactor_state        what compactors stored in a cluster
lint_objects, …        the objects of lint
manifests              reads manifests, and writes them back with changes
"""
