"""What does a real Kubernetes do? Its control plane, and kwok for the nodes, as plain processes.

`binaries` finds or builds them, `control_plane` runs them, `cluster` talks to them in sentences, `auditor`
says who did what, `webhook_server` is an admission webhook whose patch the test gives.
"""
