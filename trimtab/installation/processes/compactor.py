"""The compactor's permissions, its Deployment, and the policy that lets only the compactor write a PoolStatus."""

from collections.abc import Iterator

from trimtab.cluster.pool import MAX_SURGE
from trimtab.cluster.processes import COMPACTOR
from trimtab.compaction.drain.pool_state import NAME_PREFIX as STATE_NAMES
from trimtab.compaction.drain.pool_state import STATE_LABEL
from trimtab.compaction.order import author_policy
from trimtab.compaction.order.order_object import PLURAL as DRAIN_ORDERS
from trimtab.compaction.pool_status import PLURAL as POOL_STATUSES
from trimtab.compactor.decision_events import CONTROLLER
from trimtab.compactor.pool_state_store import UNREADABLE_STATE_LABEL
from trimtab.installation.access_rule import (
    AUTOSCALER,
    EVENTS,
    FACT_PURPOSES,
    FACTS,
    FOR_AUTOSCALER,
    FOR_OWN_LEASE,
    FOR_SIGNING_KEY,
    READ,
    WATCH,
    WHEN_BUFFERS,
    WHEN_EARLIER_EVENT,
    WHEN_FIRST_OBJECT,
    WHEN_NO_LEASE,
    WHEN_VPA,
    Rule,
    lease_rule,
)
from trimtab.installation.admission_policies import render_policy
from trimtab.installation.deployments import worker_environment
from trimtab.installation.installed_process import InstalledProcess, WorkerDeployment
from trimtab.installation.names import InstallValues, Manifest, build_manifest
from trimtab.installation.permitted_changes import EachEntry
from trimtab.installation.write_policy import (
    CREATE,
    UPDATE,
    UnrestrictedWrite,
    WriteCondition,
    WritePolicy,
    deletes_pool_status,
    label_path,
    restrict_autoscalers,
    restrict_config_maps,
    restrict_events,
    restrict_lease,
    restrict_nodes,
    restrict_scale,
    restrict_secrets,
    surge_steps_cel,
)
from trimtab.policy.schema import GROUP

_NAME = COMPACTOR.name
WHEN_ORDER = "a user has created a DrainOrder"

_READMISSION = (
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

_AUTHOR_PURPOSE = "to check that a DrainOrder was created by the user whom it names, and what that user may do"
_POOL_STATUSES_PURPOSE = "to write what `kubectl get pools` shows"
_CLUSTER_PURPOSES = {
    **FACT_PURPOSES,
    "configmaps": FOR_AUTOSCALER,
    "pods": "to see the pods of each node, and whether their successors are ready",
    "nodes": "to see which nodes exist, to cordon and uncordon nodes, and to write the signed drain annotation on them",
    "namespaces": "to read the annotation that pauses Trimtab",
    "persistentvolumes": "to read the zones and nodes of a pod's volumes",
    "persistentvolumeclaims": "to read which volumes a pod has",
    **dict.fromkeys(
        ("replicationcontrollers", "deployments", "replicasets", "statefulsets", "jobs", "daemonsets", "cronjobs"),
        "to read the owners of pods: whether an owner creates a successor, and whether all of its pods are ready",
    ),
    "poddisruptionbudgets": "to read how many pods of a workload may be unavailable",
    "csinodes": "to read how many volumes a node can attach",
    "csidrivers": "to read whether the scheduler checks that a volume's driver is on the node",
    "storageclasses": "to read where a volume that ends with its pod can be made again",
    "capacitybuffers": "to read the capacity that is reserved for pods that do not run yet",
    "podtemplates": "to read the pods for which a CapacityBuffer reserves capacity",
    **dict.fromkeys(
        ("resourceclaims", "resourceslices", "deviceclasses"), "to read the devices that pods have and nodes offer"
    ),
    "pods/eviction": "to evict the pods of a node that is drained, within their PodDisruptionBudgets",
    "pods.metrics.k8s.io": "to read what pods without requests use now",
    "events": "to report drains and evictions as Events",
    "poolstatuses": _POOL_STATUSES_PURPOSE,
    **dict.fromkeys(
        ("validatingadmissionpolicies", "validatingadmissionpolicybindings", "subjectaccessreviews"), _AUTHOR_PURPOSE
    ),
    "deployments/scale": "to give a workload more replicas while a pod of it moves",
    "horizontalpodautoscalers": "to read which Deployments an HPA scales, and to raise its minReplicas for a while "
    "where Deployments may be scaled",
    "pods/resize": "to resize running pods, as policies with `running: resize` require",
}


def _environment(values: InstallValues) -> dict[str, str]:
    return {
        **worker_environment(_NAME, values),
        "TRIMTAB_AUTOSCALER_NAMESPACE": values.autoscaler_namespace,
        "TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP": values.autoscaler_status,
        "TRIMTAB_COMPACTOR_SCALE_NAMESPACES": ":".join(values.scale_namespaces),
    }


PROCESS = InstalledProcess(
    name=_NAME,
    cluster_rules=(
        Rule("", ("pods",), READ),
        Rule("", ("nodes",), (*WATCH, "patch")),
        Rule("", ("namespaces", "persistentvolumes", "persistentvolumeclaims", "replicationcontrollers"), WATCH),
        AUTOSCALER,
        Rule("apps", ("deployments", "replicasets", "statefulsets"), WATCH),
        Rule("batch", ("jobs",), WATCH),
        Rule("policy", ("poddisruptionbudgets",), WATCH),
        Rule("storage.k8s.io", ("csinodes", "csidrivers", "storageclasses"), WATCH),
        # CapacityBuffers reserve capacity for pods of a PodTemplate; the CRD is optional.
        Rule("autoscaling.x-k8s.io", ("capacitybuffers",), WATCH),
        Rule("", ("podtemplates",), WATCH),
        Rule("resource.k8s.io", ("resourceclaims", "resourceslices", "deviceclasses"), WATCH),
        *_READMISSION,
        # What containers use now: it counts for pods without requests, and memory shrinks to it, with headroom.
        Rule("metrics.k8s.io", ("pods",), ("list",)),
        Rule("", ("pods/eviction",), ("create",)),
        Rule(
            "admissionregistration.k8s.io",
            ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
            ("get",),
            (author_policy.POLICY_NAME,),
        ),
        Rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
        EVENTS,
    ),
    namespace_rules=(
        lease_rule(_NAME),
        Rule("", ("configmaps",), ("list", "watch", "create", "patch")),
        Rule("", ("secrets",), ("get", "update"), (COMPACTOR.signing_secret,)),
        Rule(GROUP, (POOL_STATUSES,), ("list", "create", "patch", "delete")),
        Rule(GROUP, (DRAIN_ORDERS,), ("list",)),
        Rule(GROUP, (f"{DRAIN_ORDERS}/status",), ("patch",)),
    ),
    conditions={
        ("create", "leases"): WHEN_NO_LEASE,
        ("watch", "verticalpodautoscalers"): WHEN_VPA,
        ("watch", "capacitybuffers"): WHEN_BUFFERS,
        ("create", "configmaps"): WHEN_FIRST_OBJECT,
        ("patch", "poolstatuses"): "there is a pool with valid settings",
        ("create", "poolstatuses"): WHEN_FIRST_OBJECT,
        ("delete", "poolstatuses"): "a pool was deleted, or another client wrote a PoolStatus without a pool",
        ("patch", "drainorders/status"): WHEN_ORDER,
        ("create", "subjectaccessreviews"): WHEN_ORDER,
        ("patch", "events"): "an earlier Event of the node or pool is repeated within an hour",
        ("get", "events"): WHEN_EARLIER_EVENT,
    },
    cluster_purposes=_CLUSTER_PURPOSES,
    namespace_purposes={
        "leases": FOR_OWN_LEASE,
        "secrets": FOR_SIGNING_KEY,
        "configmaps": "to read the pools, and to store the state of each pool",
        "poolstatuses": _POOL_STATUSES_PURPOSE,
        "drainorders": "to read which drains users order",
        "drainorders/status": "to say what became of an order",
    },
    write_policies=(
        restrict_lease(_NAME),
        restrict_config_maps(_NAME, (STATE_NAMES,), (STATE_LABEL, UNREADABLE_STATE_LABEL)),
        restrict_secrets(_NAME, COMPACTOR.signing_secret),
        WritePolicy(
            process=_NAME,
            subject="poolstatus-fields",
            group=GROUP,
            version="*",
            kinds=(POOL_STATUSES,),
            operations=(CREATE, UPDATE),
            may_change=(("pool",), ("status",), label_path("app.kubernetes.io/name")),
            what="write the pool and the status of a PoolStatus",
        ),
        WritePolicy(
            process=_NAME,
            subject="drainorder-status",
            group=GROUP,
            version="*",
            kinds=(DRAIN_ORDERS,),
            may_change=(("status",),),
            what="write the status of a DrainOrder",
        ),
        restrict_nodes(_NAME),
        restrict_events(_NAME, CONTROLLER),
        WritePolicy(
            process=_NAME,
            subject="evictions",
            group="",
            kinds=("pods/eviction",),
            operations=(CREATE,),
            may_change=(("deleteOptions", "dryRun"), ("deleteOptions", "preconditions", "uid")),
            what="evict a pod by its uid, with the grace period that the pod has",
            conditions=(
                WriteCondition(
                    "object.?deleteOptions.?preconditions.?uid.hasValue()",
                    "this account names the uid of the pod that it evicts",
                ),
            ),
        ),
        WritePolicy(
            process=_NAME,
            subject="resizes",
            group="",
            kinds=("pods/resize",),
            may_change=tuple(
                ("spec", part, EachEntry("name"), "resources", "requests") for part in ("containers", "initContainers")
            ),
            what="change the requests of the containers of a pod",
        ),
        restrict_scale(
            _NAME,
            steps=surge_steps_cel(is_downward=False),
            what=f"scale a Deployment by at most {MAX_SURGE} replicas at a time, and never to or from zero",
        ),
        restrict_autoscalers(_NAME, is_downward=False),
    ),
    unrestricted_writes=(
        deletes_pool_status(_NAME),
        UnrestrictedWrite(
            process=_NAME,
            group="authorization.k8s.io",
            resource="subjectaccessreviews",
            operation=CREATE,
            reason="a review is a question: the API server answers it and stores nothing",
        ),
    ),
    may_scale=True,
    may_resize=True,
    environment=_environment,
    # When it stops, it still writes the states of pools.
    worker=WorkerDeployment(
        grace_seconds=60,
        # An empty folder until the Secret is created, so that the Deployment needs no change for it.
        volumes=(
            {
                "name": "notifications",
                "secret": {"secretName": "trimtab-notifications", "defaultMode": 0o440, "optional": True},
            },
        ),
        volume_mounts=({"name": "notifications", "mountPath": "/var/run/trimtab/notifications", "readOnly": True},),
    ),
)


def render_pool_status_policy() -> Iterator[Manifest]:
    """Yields the policy that lets only the compactor of a PoolStatus's own namespace create or update the PoolStatus.

    Deleting a PoolStatus is not restricted. Anyone may send an update that changes nothing, because stored objects are
    migrated by such updates.
    """
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [POOL_STATUSES, f"{POOL_STATUSES}/*"],
        "scope": "Namespaced",
    }
    account = f"request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':{COMPACTOR.account}'"
    same = " && ".join(
        f"has(object.{name}) == has(oldObject.{name}) && (!has(object.{name}) || object.{name} == oldObject.{name})"
        for name in ("pool", "status")
    )
    message = "only the compactor of this namespace writes a PoolStatus; the settings of a pool are in its ConfigMap"
    yield from render_policy(
        _NAME,
        POOL_STATUSES,
        rule,
        f"!({account})",
        [(f"request.operation == 'UPDATE' && {same}", message)],
        condition="not-the-compactor",
    )


def render_order_author_policy() -> Iterator[Manifest]:
    """Yields the policy that ties the author of a DrainOrder to the user who creates it, and lets only the compactor
    write the status. The compactor compares it with the same values."""
    condition, user = author_policy.MATCH_CONDITION
    yield from render_policy(
        _NAME, author_policy.SUBJECT, dict(author_policy.RULE), user, author_policy.VALIDATIONS, condition=condition
    )


ORDER_ROLE = "trimtab-drain-orders"
"""The name of the Role of users who may order drains. An installation binds no user to it."""


def render_order_role(values: InstallValues) -> Iterator[Manifest]:
    """Yields the Role of users who may order drains. It permits no drain: what an order may do is what its author
    may."""
    rules = (
        Rule(GROUP, (DRAIN_ORDERS,), ("create", "get", "list", "watch", "delete")),
        Rule("coordination.k8s.io", ("leases",), ("get",), (COMPACTOR.account,)),
    )
    yield build_manifest(
        "rbac.authorization.k8s.io/v1",
        "Role",
        ORDER_ROLE,
        values,
        component=_NAME,
        rules=[rule.to_manifest() for rule in rules],
    )
