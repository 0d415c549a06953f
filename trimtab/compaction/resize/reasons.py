"""Why a pod is resized, why it is not, and how its resize ends: one code per rule."""

from trimtab.cluster.reason import Code

# ── proposals ────────────────────────────────────────────────────────────
SHRINKS = Code(
    "resize-shrinks",
    "The pod requests more than its policy would give it now, so its requests shrink while it runs.",
    "Nothing. `running: leave` in the policy waits for the next pod instead.",
)  # fmt: skip
GROWS = Code(
    "resize-grows",
    "The pod requests less than its policy would give it now, and its node has room: its requests grow while it runs.",
    "Nothing.",
)  # fmt: skip
# ── refusals ─────────────────────────────────────────────────────────────
NOT_SUPPORTED = Code(
    "resize-not-supported",
    "The cluster cannot resize running pods: that needs Kubernetes 1.33, and the feature InPlacePodVerticalScaling.",
    "Update the cluster. Until then the requests of new pods follow, as without `running: resize`.",
)  # fmt: skip
NODE_CANNOT = Code(
    "resize-node-cannot", "The kubelet of the pod's node does not report what containers have, so it cannot resize.",
    "Update the node to Kubernetes 1.33 or later.",
)  # fmt: skip
NO_POOL = Code(
    "resize-no-pool", "The pod is on a node that no pool has, or that several have: the compactor leaves it alone.",
    "Create a pool for the node, or correct the selectors of its pools.",
)  # fmt: skip
CANNOT = Code(
    "resize-pod-cannot", "A pod like this is never resized in place.",
    "Nothing: its next pod gets the new requests.",
)  # fmt: skip
CLASS_STAYS = Code(
    "resize-keeps-class",
    "The resize would change the class of service of the pod, or the pod is not Burstable.",
    "Nothing: a running pod never changes its class. Remove its limits in the template if it should be Burstable.",
)  # fmt: skip
RESTARTS = Code(
    "resize-restarts", "A resize of this resource would restart the container (resizePolicy RestartContainer).",
    "Set restartPolicy NotRequired in the container's resizePolicy, if it can live with the change.",
)  # fmt: skip
NO_REQUEST = Code(
    "resize-nothing-requested", "The container requests nothing of this resource, so there is nothing to shrink.",
    "Nothing: its next pod gets a request.",
)  # fmt: skip
IN_USE = Code(
    "resize-memory-in-use", "The memory that the container uses, with headroom, is no less than what it requests.",
    "Nothing.",
)  # fmt: skip
USE_UNKNOWN = Code(
    "resize-memory-unknown", "How much memory the container uses is not known, so its request does not shrink.",
    "Install the metrics server, or wait for the recommender.",
)  # fmt: skip
NODE_FULL = Code(
    "resize-node-full",
    "The node has no room for the larger request, as long as pods on it may be reverted, or the pods of a node of the "
    "pool that is being drained may come to it.",
    "Nothing: the pod's next pod gets the request.",
)  # fmt: skip
ANOTHER = Code(
    "resize-by-another", "Another resize of the pod is in progress, or a VPA wrote its requests.", "Nothing.",
)  # fmt: skip
KEPT = Code("resize-kept", "An annotation or a label of the pod says that it is left alone.", "Nothing.")
YOUNG = Code("resize-pod-young", "The pod has just started, or is not ready.", "Wait.")
LEAVING = Code("resize-node-leaving", "The pod's node is drained, cordoned, not ready or deleted.", "Nothing.")
UNREADABLE = Code(
    "resize-unreadable", "What a policy would give the pod cannot be computed, or the pod cannot be read.",
    "Read the message.",
)  # fmt: skip
BACKS_OFF = Code(
    "resize-backs-off",
    "A resize of this workload did harm or failed, so its pods are left alone for a while, twice as long each time.",
    "Read the history for the cause; raise the policy's `min`, or say `running: leave`.",
)  # fmt: skip
WAVE = Code("resize-waits-for-wave", "Other pods of the workload are being verified, or the wave is full.", "Wait.")
PACE = Code("resize-rate-limited", "As many pods were resized as the pool allows.", "Wait.")
POOL_STOPPED = Code(
    "resize-pool-stopped",
    "A revert in this pool found no room on its node, so no pod of the pool is resized for a while.",
    "See the history. Keep more headroom on the nodes of the pool.",
)  # fmt: skip
NOT_ACTING = Code(
    "resize-not-acting", "The pool rehearses, is disabled, or everything is paused: nothing is resized.",
    "Set `mode: act` in the pool when you trust its plans.",
)  # fmt: skip
# ── outcomes ─────────────────────────────────────────────────────────────
VERIFIED = Code("resize-verified", "The resized pod ran without harm: what it gave up is free now.", "Nothing.")
CHANGED = Code(
    "resize-changed-by-another", "Another client changed the requests of the pod, so its resize is not followed on.",
    "Nothing. If it happens often, two controllers resize the same pods.",
)  # fmt: skip
GONE = Code("resize-pod-gone", "The resized pod is gone.", "Nothing.")
NOT_WRITTEN = Code(
    "resize-not-written", "The resize was announced in the state and not written.", "Nothing: it is decided again."
)  # fmt: skip
REJECTED = Code(
    "resize-rejected",
    "The API server rejects the resize: a webhook, a quota or a LimitRange, or the compactor lacks the permission "
    "`pods/resize`.",
    "Read the message. `trimtab install --apply --resize`, in the chart `compactor.resize`, grants the permission.",
)  # fmt: skip
OOM_KILL = Code(
    "resize-oom-kill", "A container was killed because it ran out of memory after its pod was resized.",
    "Nothing: the pod is reverted, and the workload backs off.",
)  # fmt: skip
RESTARTED = Code("resize-restarted", "A container restarted after its pod was resized.", "See the container's log.")
UNREADY = Code("resize-not-ready", "The pod stopped being ready after it was resized.", "See the pod's events.")
PRESSURE = Code(
    "resize-pressure", "The processes of the pod wait for cpu or memory more than before the resize (PSI).",
    "Nothing: the pod is reverted.",
)  # fmt: skip
THROTTLED = Code("resize-throttled", "The pod is throttled more than before the resize.", "Nothing: it is reverted.")
INFEASIBLE = Code("resize-infeasible", "The kubelet says that this node can never hold the resize.", "Nothing.")
DEFERRED = Code("resize-deferred", "The kubelet defers the resize for too long.", "Nothing: it is reverted.")
FAILED = Code("resize-failed", "The kubelet could not apply the resize in time.", "See the pod's events.")
NO_ANSWER = Code("resize-not-answered", "The kubelet does not answer the resize.", "See whether the node is healthy.")
WITH_OTHERS = Code(
    "resize-reverted-with-others", "Another pod of the same workload was harmed by the same resize.", "Nothing."
)
REVERTED = Code("resize-reverted", "The pod has again what it had before the resize.", "Nothing.")
NO_ROOM = Code(
    "resize-revert-without-room",
    "Other pods took the room that the pod gave up, so its node has no room for its former requests.",
    "Nothing if its budget allows: then it is evicted, and its successor finds another node. Or see the history.",
)  # fmt: skip
REPLACED = Code(
    "resize-replaced", "The pod was evicted because its node has no room for its former requests.", "Nothing."
)
WAITS = Code("resize-waits", "The kubelet has not finished, or the pod is being verified.", "Nothing.")
