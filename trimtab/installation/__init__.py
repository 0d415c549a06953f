"""What an installation consists of: every manifest, from the values that a user can set. Nothing here reads or writes a
cluster.

names                 the names of all objects, and the values that a user can set
rbac, purposes        an account per process, with exactly the permissions that it needs, and what each is for
admission_policies,   restrictions of these accounts that RBAC cannot express; the two webhook configurations
write_policies,
permitted_changes
deployments           Deployment, Service, Secret, PodDisruptionBudget and NetworkPolicy of each process
metrics_api           what the custom metrics API needs
manifests             all manifests in the order in which they are applied; they are removed in reverse order
"""
