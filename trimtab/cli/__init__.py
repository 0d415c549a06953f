"""The command line of Trimtab: one folder or file per verb.

main                   the group of all verbs; exit codes, and how mistakes are reported
output                 writes a report as a table, JSON, YAML or HTML
page/                  a report as one HTML page
reports/               reports that several verbs show
shared_options         options that several verbs have
terminal_progress      shows the progress of what `trimtab.inputs` reads
admit/                 what admission would change in pods
plan/, simulate/       which nodes can be drained, and what is left after all waves
recommend/             requests from usage
policies/              checks, lists and explains policies, and prints their schema
lint/                  where autoscalers, budgets and limits work against each other
pools/                 checks pools, and imports them from an estafette node-compactor
runtimeclass           what a runtime costs per pod
compactor/             the compactor process, its state, and the commands for it
capture                writes a cluster to a file
certs, signing_key     the webhook's certificates; the keys by which the processes sign
install/, doctor/      installs what Trimtab needs in a cluster; checks an installation
webhook, recommender,  the other processes
watchdog
demo/                  admission and compaction on this machine, without a cluster
"""

from trimtab.cli.main import main

__all__ = ["main"]
