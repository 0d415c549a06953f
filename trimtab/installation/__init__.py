"""What an installation consists of: every manifest, from the values that a user can set. Nothing here reads or writes a
cluster.

names                 the names of all objects, and the values that a user can set
processes             a file for each process: its permissions, their purposes, what it may change, its own manifests
installed_process,    what each of these files declares, and all of them together
installed_processes
rbac, purposes,       an account per process, with exactly the permissions that it needs, and what each is for
access_rule
admission_policies,   restrictions of these accounts that RBAC cannot express
write_policy,
permitted_changes
deployments           Deployment, Secret, PodDisruptionBudget and NetworkPolicy of each process
manifests             all manifests in the order in which they are applied; they are removed in reverse order
"""
