"""Why a pod is as it is: its annotation, the policies, the compactor's decisions, Events and the webhook's log."""
