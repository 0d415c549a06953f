"""What a role grants, why, and when it is used: rules, and the rules and texts that several processes share."""

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.cluster.cluster_autoscaler import STATUS_NAME as AUTOSCALER_STATUS
from trimtab.cluster.processes import account_name
from trimtab.installation.names import Manifest

READ = ("get", "list", "watch")
WATCH = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on resources of one API group, restricted to the objects in `names` if there are any."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    is_for_certificate: bool = False
    """Whether the rule is only for the certificate's Secret and the caBundles. If cert-manager writes them, the process
    does not need the rule."""

    def to_manifest(self) -> Manifest:
        """Returns the rule in the form of a Role."""
        rule: Manifest = {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}
        return {**rule, "resourceNames": list(self.names)} if self.names else rule


def lease_rule(process: str) -> Rule:
    """Returns the rule for the process's own Lease.

    The name restricts `create`, too: a Lease is created by PUT, whose request contains the name. With POST the name
    would be empty.
    """
    return Rule("coordination.k8s.io", ("leases",), ("get", "create", "update"), (account_name(process),))


def granted_rules(rules: Iterable[Rule], *, cert_manager: bool) -> tuple[Rule, ...]:
    """Returns the rules that are granted; if cert-manager is used, rules for the certificate's Secret and the caBundles
    are left out."""
    return tuple(rule for rule in rules if not (cert_manager and rule.is_for_certificate))


FACTS = (
    Rule("", ("namespaces", "nodes", "limitranges", "resourcequotas", "replicationcontrollers"), WATCH),
    Rule("apps", ("deployments", "replicasets", "statefulsets", "daemonsets"), WATCH),
    Rule("batch", ("jobs", "cronjobs"), WATCH),
    Rule("autoscaling", ("horizontalpodautoscalers",), WATCH),
    Rule("autoscaling.k8s.io", ("verticalpodautoscalers",), WATCH),
    Rule("node.k8s.io", ("runtimeclasses",), WATCH),
    Rule("scheduling.k8s.io", ("priorityclasses",), WATCH),
    Rule("trimtab.dev", ("podpolicies",), WATCH),
    Rule("admissionregistration.k8s.io", ("mutatingwebhookconfigurations",), WATCH),
    Rule("discovery.k8s.io", ("endpointslices",), WATCH),
    Rule("coordination.k8s.io", ("leases",), WATCH),
)
"""The rules for the objects that decisions about a pod depend on.

Webhook configurations and EndpointSlices show whether the VPA's own webhook can act. Leases show whether the scheduler
that a policy sets for pods is running. The rules are not restricted to a namespace, because a policy may name any
namespace.
"""

READMISSION = (
    Rule("", ("limitranges", "resourcequotas"), WATCH),
    Rule("apps", ("daemonsets",), WATCH),
    Rule("batch", ("cronjobs",), WATCH),
    *(
        rule
        for rule in FACTS
        if rule.group in ("autoscaling", "autoscaling.k8s.io", "node.k8s.io", "scheduling.k8s.io", "trimtab.dev")
    ),
)
"""The rules for the objects that determine the requests of a pod that replaces an evicted pod. Rules that a plan needs
anyway are not repeated."""

RECOMMENDATIONS = Rule("", ("configmaps",), WATCH)
EVENTS = Rule("events.k8s.io", ("events",), ("get", "create", "patch"))
AUTOSCALER = Rule("", ("configmaps",), WATCH, (AUTOSCALER_STATUS,))
"""The permission to watch the autoscaler's status ConfigMap in any namespace. The ConfigMap's name is replaced by
`InstallValues.autoscaler_status`."""

_OWNERS = "to read the owners of pods, by which policies match"
FACT_PURPOSES = {
    "namespaces": "to read the labels that policies match, the opt-outs, and the annotation that pauses Trimtab",
    "nodes": "to check whether any node can hold the pod as it would be changed",
    "limitranges": "to read the bounds that the API server checks after the webhook",
    "resourcequotas": "to check whether the changed pod stays within the namespace's quota",
    **dict.fromkeys(
        ("replicationcontrollers", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs"),
        _OWNERS,
    ),
    "horizontalpodautoscalers": "to know whether the number of replicas depends on the requests",
    "verticalpodautoscalers": "to know whether a VPA sets the requests, and what the VPA recommends",
    "runtimeclasses": "to read the overhead and the nodes of the RuntimeClass that a policy names",
    "priorityclasses": "to check whether the PriorityClass that a policy names exists",
    "podpolicies": "to read the policies",
    "mutatingwebhookconfigurations": "to know whether the VPA's webhook is registered",
    "endpointslices": "to know whether the VPA's webhook answers",
    "leases": "to know whether the scheduler that a policy names runs",
}
"""Resource → what the rules `FACTS` are for."""
FOR_OWN_LEASE = "to let only one replica lead"
FOR_RECOMMENDATIONS = "to read the recommendations that the recommender writes"
FOR_SIGNING_KEY = "to read the key that signs annotations"
FOR_CERTIFICATE = "to read and write the serving certificate, which the replicas issue and renew"
FOR_AUTOSCALER = "to read the cluster autoscaler's status: its health, and the node groups that it can grow"

WHEN_VPA = "the definition of VerticalPodAutoscaler is installed; until then a list request is answered with 404"
WHEN_BUFFERS = "the definition of CapacityBuffer is installed; until then a list request is answered with 404"
WHEN_VPA_CALLED = "the VPA's webhook is registered, and its endpoints show whether the webhook answers"
WHEN_SCHEDULER_NAMED = "a policy names a scheduler, and the scheduler's Lease shows whether it runs"
WHEN_EVENT_TO_REPORT = "the process reports an Event about an object"
WHEN_EARLIER_EVENT = "an Event of an earlier leader exists, and the count of the Event is increased"
WHEN_FIRST_OBJECT = (
    "the first object is written: server-side apply of an object that does not exist is also authorized as create"
)
WHEN_NO_LEASE = (
    "the process's Lease does not exist yet: a PUT of an object that does not exist is also authorized as create"
)


FACT_CONDITIONS = {
    ("watch", "verticalpodautoscalers"): WHEN_VPA,
    ("list", "endpointslices"): WHEN_VPA_CALLED,
    ("watch", "endpointslices"): WHEN_VPA_CALLED,
    ("list", "leases"): WHEN_SCHEDULER_NAMED,
    ("watch", "leases"): WHEN_SCHEDULER_NAMED,
}
"""(verb, resource) → when a process uses a rule of `FACTS`."""
