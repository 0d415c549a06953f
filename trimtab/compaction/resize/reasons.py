"""Reasons why a pod is resized, why it is not, and how its resize ends: one code per rule."""

from trimtab.cluster.reason import Code

# ── proposals ────────────────────────────────────────────────────────────
SHRINKS = Code(
    "resize-shrinks",
    "The pod requests more than its policy would give it now, so the compactor lowers its requests while it runs.",
    "Nothing to do. If only new pods should be changed, set `running: leave` in the policy.",
)
GROWS = Code(
    "resize-grows",
    "The pod requests less than its policy would give it now, and its node has room, so the compactor raises its "
    "requests while it runs.",
    "Nothing.",
)
# ── refusals ─────────────────────────────────────────────────────────────
NOT_SUPPORTED = Code(
    "resize-not-supported",
    "The cluster cannot resize running pods. This needs Kubernetes 1.33 and the feature InPlacePodVerticalScaling.",
    "Update the cluster. Until then only new pods get the new requests, as without `running: resize`.",
)
NODE_CANNOT = Code(
    "resize-node-cannot",
    "The kubelet of the pod's node does not report the resources of containers, so the pod cannot be resized.",
    "Update the node to Kubernetes 1.33 or later.",
)
NO_POOL = Code(
    "resize-no-pool",
    "The pod is on a node that is in no pool or in several, so the compactor does not resize it.",
    "Create a pool for the node, or correct the selectors of its pools.",
)
CANNOT = Code(
    "resize-pod-cannot",
    "Kubernetes or the compactor never resizes pods of this kind in place; the message names the cause.",
    "Nothing to do: the next pod of the workload gets the new requests.",
)
CLASS_STAYS = Code(
    "resize-keeps-class",
    "The resize would change the QoS class of the pod, or the pod does not have the class Burstable.",
    "Nothing to do: a running pod never changes its QoS class. If the pod should be Burstable, remove its limits "
    "in the template.",
)
RESTARTS = Code(
    "resize-restarts",
    "A resize of this resource would restart the container (resizePolicy RestartContainer).",
    "If the container tolerates a resize without a restart, set restartPolicy NotRequired in its resizePolicy.",
)
NO_REQUEST = Code(
    "resize-nothing-requested",
    "The container has no request for this resource, so no request can be lowered.",
    "Nothing to do: the next pod of the workload gets a request.",
)
IN_USE = Code(
    "resize-memory-in-use",
    "The memory that the container uses, plus headroom, is at least as high as its request.",
    "Nothing.",
)
USE_UNKNOWN = Code(
    "resize-memory-unknown",
    "The memory usage of the container is not known, so its request is not lowered.",
    "Install the metrics server, or wait for the recommender.",
)
NODE_FULL = Code(
    "resize-node-full",
    "The node has no room for the larger request. Its free room may be needed to revert resizes, or for pods of "
    "a node that is being drained.",
    "Nothing to do: the next pod of the workload gets the larger request.",
)
ANOTHER = Code(
    "resize-by-another", "Another resize of the pod is in progress, or a VPA wrote the pod's requests.", "Nothing."
)
KEPT = Code("resize-kept", "An annotation or a label of the pod says that it must not be changed.", "Nothing.")
YOUNG = Code("resize-pod-young", "The pod started only a short time ago, or is not ready.", "Wait.")
LEAVING = Code(
    "resize-node-leaving",
    "The pod's node is being drained, is cordoned, is not ready, or is being deleted.",
    "Nothing.",
)
UNREADABLE = Code(
    "resize-unreadable",
    "Trimtab cannot compute the requests that a policy would give the pod, or cannot read the pod.",
    "The message names the cause.",
)
BACKS_OFF = Code(
    "resize-backs-off",
    "A resize of this workload failed or did harm, so its pods are not resized for a while, and for twice as "
    "long after each repetition.",
    "Read `trimtab compactor history` for the cause. Raise the policy's `min`, or set `running: leave`.",
)
WAVE = Code(
    "resize-waits-for-wave",
    "The compactor is verifying the resizes of other pods of the workload, or has reached the number of pods "
    "that it resizes together.",
    "Wait.",
)
PACE = Code("resize-rate-limited", "The pool has reached its limit of resized pods per hour.", "Wait.")
POOL_STOPPED = Code(
    "resize-pool-stopped",
    "A node had no room for the former requests of a resized pod, so the compactor resizes no pod of the pool "
    "for a while.",
    "See `trimtab compactor history`. Keep more headroom on the nodes of the pool.",
)
NOT_ACTING = Code(
    "resize-not-acting",
    "The pool is in mode rehearse or disabled, or the compactor is paused, so no pod is resized.",
    "Set `mode: act` in the pool when you trust its plans.",
)
# ── outcomes ─────────────────────────────────────────────────────────────
VERIFIED = Code(
    "resize-verified",
    "The resized pod ran without harm, so the resources that the resize freed can be used by other pods.",
    "Nothing.",
)
CHANGED = Code(
    "resize-changed-by-another",
    "Another client changed the requests of the pod after the resize, so the compactor no longer watches this resize.",
    "Nothing to do. If it happens often, two controllers resize the same pods; let only one of them do it.",
)
GONE = Code("resize-pod-gone", "The resized pod no longer exists.", "Nothing.")
NOT_WRITTEN = Code(
    "resize-not-written",
    "The state of the pool contains the resize, but the pod does not have the new requests.",
    "Nothing to do: the compactor decides again whether to resize the pod.",
)
REJECTED = Code(
    "resize-rejected",
    "The API server rejects the resize because of a webhook, a quota or a LimitRange, or because the compactor "
    "lacks the permission `pods/resize`.",
    "Read the message. `trimtab install --apply --resize` (in the chart: `compactor.resize`) grants the permission.",
)
OOM_KILL = Code(
    "resize-oom-kill",
    "A container was killed because it ran out of memory after its pod was resized.",
    "Nothing to do: the compactor reverts the resize, and resizes no pod of this workload for a while.",
)
RESTARTED = Code("resize-restarted", "A container restarted after its pod was resized.", "See the container's log.")
UNREADY = Code("resize-not-ready", "The pod stopped being ready after it was resized.", "See the Events of the pod.")
PRESSURE = Code(
    "resize-pressure",
    "After the resize, the processes of the pod wait for cpu or memory longer than before (pressure stall "
    "information, PSI).",
    "Nothing to do: the compactor reverts the resize.",
)
THROTTLED = Code(
    "resize-throttled",
    "After the resize, the pod is throttled more than before.",
    "Nothing to do: the compactor reverts the resize.",
)
INFEASIBLE = Code("resize-infeasible", "The kubelet says that this node can never apply the resize.", "Nothing.")
DEFERRED = Code(
    "resize-deferred",
    "The kubelet has deferred the resize for too long.",
    "Nothing to do: the compactor reverts the resize.",
)
FAILED = Code("resize-failed", "The kubelet could not apply the resize in time.", "See the Events of the pod.")
NO_ANSWER = Code(
    "resize-not-answered", "The kubelet does not react to the resize.", "Check whether the node is healthy."
)
WITH_OTHERS = Code("resize-reverted-with-others", "The same resize harmed another pod of the workload.", "Nothing.")
REVERTED = Code("resize-reverted", "The pod has its former requests again.", "Nothing.")
NO_ROOM = Code(
    "resize-revert-without-room",
    "Other pods use the room that the resize of this pod freed, so its node has no room for its former requests.",
    "If its PodDisruptionBudget allows it, the compactor evicts the pod, and the successor gets another node. "
    "Otherwise see `trimtab compactor history`.",
)
REPLACED = Code(
    "resize-replaced", "The pod was evicted because its node has no room for its former requests.", "Nothing."
)
WAITS = Code(
    "resize-waits",
    "The kubelet has not finished the resize, or the compactor is still verifying that the pod runs without harm.",
    "Nothing.",
)
