"""`trimtab`: one folder or file per verb.

main                   the group and what all verbs share: exit codes, how mistakes are reported
output                 one report → table | json | yaml | html
live_cluster           a cluster instead of a file
manifests              manifests read and written back
page/                  a report as one HTML page
admit/                 what would become of these pods
plan/, simulate/       which nodes can go, and what is left when all waves are done
recommend/             requests from usage
policies/              check, list, explain, schema
lint/                  where autoscalers, budgets and limits work against each other
pools/                 pools from an estafette node-compactor
runtimeclass           what a runtime costs per pod
compactor/             the process, its state, and the words for it
capture                a cluster as a file
certs, signing_key     the webhook's certificates; keys of what is signed
install/, doctor/      what Trimtab needs in a cluster; is everything wired?
webhook, recommender,  the other processes
watchdog
demo/                  the main job end to end on this machine
"""

from trimtab.cli.main import main

__all__ = ["main"]
