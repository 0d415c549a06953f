"""What does Trimtab need in a cluster? Values in, plain manifests out, in the order they are applied.

names               what everything is called, and the values that can be chosen
rbac                an account per process, and exactly what it may do
admission_policies  what RBAC cannot say about these accounts; the two webhook configurations
deployments         Deployment, Service, Secret, disruption budget and NetworkPolicy of each process
manifests           all of it, in order; the same in reverse to remove it
cleanup             what the processes wrote, removed; the Job that does so before a package manager removes the
                    rest
apply               applied, removed
command             `trimtab install`
"""
