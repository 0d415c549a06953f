"""Reasons why a pod is resized, why it is not, and how its resize ends: one code per rule."""

from trimtab.cluster.reason import Code

# ── proposals ────────────────────────────────────────────────────────────
SHRINKS = Code(
    "resize-shrinks",
    "The compactor lowers the running pod's requests to those of its policy.",
    "Set `running: leave` in the policy if only new pods should be changed.",
)
GROWS = Code(
    "resize-grows",
    "The compactor raises the running pod's requests to those of its policy. Its node has room.",
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
    "The kubelet of the pod's node does not report resources of containers, so it cannot resize them.",
    "Update the node to Kubernetes 1.33 or later.",
)
NO_POOL = Code(
    "resize-no-pool",
    "The pod's node is in no pool or in several, so the pod is not resized.",
    "Create a pool for the node, or correct its pools' selectors.",
)
CANNOT = Code(
    "resize-pod-cannot",
    "Pods of this kind are never resized in place. The message names the cause.",
    "Nothing to do: the workload's next pod gets the new requests.",
)
CLASS_STAYS = Code(
    "resize-keeps-class",
    "The resize would change the pod's QoS class, or the class is not Burstable.",
    "Remove the limits in the template if the pod should be Burstable. A running pod never changes its QoS class.",
)
RESTARTS = Code(
    "resize-restarts",
    "The resize would restart the container (resizePolicy RestartContainer).",
    "Set restartPolicy NotRequired in its resizePolicy, if it needs no restart.",
)
NO_REQUEST = Code(
    "resize-nothing-requested",
    "The container has no request that could be lowered.",
    "Nothing to do: the workload's next pod gets a request.",
)
IN_USE = Code(
    "resize-memory-in-use",
    "The container uses about as much memory as it requests. Headroom counts too.",
    "Nothing.",
)
USE_UNKNOWN = Code(
    "resize-memory-unknown",
    "The container's memory usage is not known, so its request is not lowered.",
    "Install the metrics server, or wait for the recommender.",
)
NODE_FULL = Code(
    "resize-node-full",
    "The node has no room for the larger request. Its free room may be needed to revert resizes, or for pods of a "
    "node that is being drained.",
    "Nothing to do: the workload's next pod gets the larger request.",
)
ANOTHER = Code("resize-by-another", "The pod is being resized, or a VPA wrote its requests.", "Nothing.")
KEPT = Code("resize-kept", "An annotation or label protects the pod from changes.", "Nothing.")
YOUNG = Code("resize-pod-young", "The pod is not ready, or started a short time ago.", "Wait.")
LEAVING = Code(
    "resize-node-leaving",
    "The pod's node is being drained, is cordoned, is not ready, or is being deleted.",
    "Nothing.",
)
UNREADABLE = Code(
    "resize-unreadable",
    "The pod, or the requests that its policy would give it, cannot be computed.",
    "See the cause in the message.",
)
BACKS_OFF = Code(
    "resize-backs-off",
    "A resize of the workload failed or did harm, so its pods are left alone for a while. The time doubles after "
    "each repetition.",
    "See `trimtab compactor history`; raise the policy's `min`, or set `running: leave`. The history has the cause.",
)
WAVE = Code(
    "resize-waits-for-wave",
    "Other resizes of the workload are being verified first. The compactor resizes a limited number of pods together.",
    "Wait.",
)
PACE = Code("resize-rate-limited", "The pool has reached its limit of resized pods per hour.", "Wait.")
POOL_STOPPED = Code(
    "resize-pool-stopped",
    "A resized pod could not get its requests back, so the pool's resizes stop for a while. A node had no room for "
    "the former requests.",
    "Keep more headroom in the pool; see `trimtab compactor history`.",
)
NOT_ACTING = Code(
    "resize-not-acting",
    "The pool rehearses or is disabled, or the compactor is paused, so no pod is resized.",
    "Set `mode: act` in the pool when you trust its plans.",
)
# ── outcomes ─────────────────────────────────────────────────────────────
VERIFIED = Code(
    "resize-verified",
    "The resized pod ran without harm. What the resize freed can be used by other pods.",
    "Nothing.",
)
CHANGED = Code(
    "resize-changed-by-another",
    "Another client changed the pod's requests after the resize. The compactor no longer watches this resize.",
    "Let only one controller resize the pods, if this happens often.",
)
GONE = Code("resize-pod-gone", "The resized pod no longer exists.", "Nothing.")
NOT_WRITTEN = Code(
    "resize-not-written",
    "The pod does not have the new requests of a recorded resize. The state of the pool contains the resize.",
    "Nothing to do: the compactor decides again. It may resize the pod anew.",
)
REJECTED = Code(
    "resize-rejected",
    "The API server rejects the resize. A webhook, a quota or a LimitRange forbids it, or the compactor lacks the "
    "permission `pods/resize`.",
    "Correct the cause in the message; `trimtab install --apply --resize` grants the permission. In the chart it is "
    "`compactor.resize`.",
)
OOM_KILL = Code(
    "resize-oom-kill",
    "A container ran out of memory after the resize.",
    "Nothing to do: the compactor reverts it, and resizes no pod of this workload for a while.",
)
RESTARTED = Code("resize-restarted", "A container restarted after its pod was resized.", "See the container's log.")
UNREADY = Code("resize-not-ready", "The pod stopped being ready after it was resized.", "See the Events of the pod.")
PRESSURE = Code(
    "resize-pressure",
    "The pod waits longer for cpu or memory since the resize. That is its pressure stall information (PSI).",
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
    "The node has no room for the pod's former requests. Other pods use the room that the resize freed.",
    "Nothing to do: the compactor evicts the pod, if its PodDisruptionBudget allows it. The successor gets another "
    "node. Otherwise see `trimtab compactor history`.",
)
REPLACED = Code(
    "resize-replaced", "The pod was evicted, because its node had no room for its former requests.", "Nothing."
)
WAITS = Code(
    "resize-waits",
    "The kubelet has not finished the resize, or it is still being verified.",
    "Nothing.",
)
