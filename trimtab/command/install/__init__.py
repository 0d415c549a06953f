"""What does Trimtab need in a cluster? Values in, plain manifests out, in the order they are applied.

values      what can be chosen
names       what everything is called
rbac        an account per process, and exactly what it may do
guards      a disruption budget and a NetworkPolicy per process
serving     Service, Deployment and Secret of the webhook
working     the processes behind a Lease
calling     the two webhook configurations: when API servers call us
removal     the Job that takes it back before a package manager removes the rest
manifests   all of it, in order; the same in reverse to take it away
traces      what the processes wrote, taken back
carry       applied, removed
verb        `trimtab install`
"""
