"""`trimtab`: one folder or file per verb.

main      the group and what all verbs share: exit codes, how mistakes are told
files     paths, folders, `-`, the shipped policies → (name, bytes)
output    one report → table | json | yaml | html
admit/    what would become of these pods
policies/ check, list, explain, schema
live      a cluster instead of a file
capture   a cluster as a file
certs     issue, status
webhook   serve
demo      the main job end to end on this machine
"""

from trimtab.command.main import main

__all__ = ["main"]
