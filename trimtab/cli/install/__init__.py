"""The `install` verb: it renders all manifests of an installation from its values, applies them and removes them.

names               the names of all objects, and the values that a user can set
rbac                an account per process, with exactly the permissions that it needs
admission_policies  restrictions of these accounts that RBAC cannot express; the two webhook configurations
deployments         Deployment, Service, Secret, PodDisruptionBudget and NetworkPolicy of each process
manifests           all manifests in the order in which they are applied; they are removed in reverse order
cleanup             removes what the processes wrote; the Job that does this before a package manager removes the rest
apply               applies manifests and removes them
command             the command line of `trimtab install`
"""
