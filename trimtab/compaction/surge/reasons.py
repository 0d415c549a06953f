"""Reasons why a Deployment cannot have more pods for a while so that its budget allows an eviction: one code per
rule."""

from trimtab.cluster.reason import Code

OTHER_OWNER = Code(
    "surge-not-a-deployment",
    "The PodDisruptionBudget allows no disruption, and only a Deployment can have one more pod for a while. No "
    "Deployment owns the pod.",
    "Run one replica more than minAvailable, or change the budget.",
)
UNKNOWN_DEPLOYMENT = Code(
    "surge-deployment-unknown",
    "The PodDisruptionBudget allows no disruption, and the pod's Deployment or the budget's spec was not read. What "
    "is not known is not scaled.",
    "Take a snapshot with deployments, replicasets and poddisruptionbudgets of all namespaces.",
)
PAUSED = Code(
    "surge-deployment-paused",
    "The PodDisruptionBudget allows no disruption, and the pod's Deployment is paused.",
    "Resume the rollout with `kubectl rollout resume`.",
)
ROLLING = Code(
    "surge-rollout-in-progress",
    "The PodDisruptionBudget allows no disruption, and the pod's Deployment is being rolled out.",
    "Wait until the rollout has ended; `kubectl rollout status` shows it.",
)
RECREATES = Code(
    "surge-strategy-recreate",
    "The PodDisruptionBudget allows no disruption, and the pod's Deployment has the strategy Recreate. An old pod "
    "then ends before a new one starts.",
    "Change the strategy to RollingUpdate, if two pods may run at the same time.",
)
NO_SURGE = Code(
    "surge-max-surge-is-zero",
    "The PodDisruptionBudget of the pod allows no disruption, and maxSurge of its Deployment is 0: not even a rollout "
    "may have more pods than the Deployment wants.",
    "If more pods may run at the same time, raise maxSurge of the Deployment's strategy.",
)
AUTOSCALED = Code(
    "surge-autoscaler-owns-count",
    "The PodDisruptionBudget allows no disruption, and several HPAs scale the pod's Deployment, or one to zero.",
    "Let one HPA with minReplicas of at least 1 scale the Deployment.",
)
AUTOSCALER_MANAGED = Code(
    "surge-autoscaler-managed",
    "The PodDisruptionBudget allows no disruption, and another owner would write the HPA's minReplicas back. A "
    "HorizontalPodAutoscaler writes the count of the Deployment; the owner is KEDA, a tool that delivers from Git, "
    "or another one.",
    "Raise minReplicas by one where that owner reads it.",
)
AUTOSCALER_UNKNOWN = Code(
    "surge-autoscaler-unknown",
    "The PodDisruptionBudget allows no disruption, and it is not known who writes the HPA's minReplicas. The "
    "snapshot does not show it. What is not known is not changed.",
    "Plan on the live cluster, or take the snapshot with `kubectl get --show-managed-fields`.",
)
AUTOSCALER_MOVING = Code(
    "surge-autoscaler-is-scaling",
    "The PodDisruptionBudget allows no disruption, and the HPA is changing the count, or does not work.",
    "Wait until it has scaled. If it does not, `kubectl describe hpa` says why.",
)
AUTOSCALER_FULL = Code(
    "surge-autoscaler-at-maximum",
    "The PodDisruptionBudget allows no disruption, and the HPA's maxReplicas allows no additional pod.",
    "Raise maxReplicas, or change the budget.",
)
CONTROLLED = Code(
    "surge-controller-owns-count",
    "The PodDisruptionBudget allows no disruption, and another object controls the pod's Deployment. That object would "
    "remove one more pod.",
    "Run one replica more in the object that the message names, or change its budget.",
)
ONE_NODE_CLAIM = Code(
    "surge-claim-of-one-node",
    "The PodDisruptionBudget allows no disruption, and the pod's PersistentVolumeClaim serves only one node.",
    "Use a volume with ReadWriteMany, or change the budget.",
)
TIED = Code(
    "surge-pod-tied-to-node",
    "The PodDisruptionBudget allows no disruption, and the pod is tied to its node. It has a hostPath, a device "
    "claim, or a rule that names the node.",
    "Change the budget. No setting of the pool changes this.",
)
IN_PROGRESS = Code(
    "surge-in-progress",
    "The PodDisruptionBudget allows no disruption, and another drain gives the pod's Deployment more pods now.",
    "Wait until that drain has ended.",
)
REVERTED = Code(
    "surge-was-reverted",
    "The PodDisruptionBudget allows no disruption, and another client took additional pods back. That was in the "
    "last day; it may be a tool that delivers from Git.",
    "Run one replica more where that client reads the count, or change the budget.",
)
TOO_MANY = Code(
    "surge-too-large",
    "The PodDisruptionBudget needs more additional pods than surge.extraPods of the pool permits.",
    "Raise surge.extraPods (at most 3), or change the budget as the message says.",
)
NO_QUOTA = Code(
    "surge-without-quota",
    "The PodDisruptionBudget allows no disruption, and a ResourceQuota has no room for additional pods.",
    "Raise the quota. No setting of the pool changes this.",
)
NO_RIGHT = Code(
    "surge-without-right",
    "The PodDisruptionBudget allows no disruption, and the compactor may not scale the pod's Deployment.",
    "Grant the permission: `trimtab install --scale-namespace NAMESPACE`.",
)
NO_ROOM = Code(
    "surge-without-room",
    "There is no room for the additional pods that run for a while before an eviction. The pods fit on other nodes, "
    "but the autoscaler would add a node for the additional ones.",
    "Wait until more capacity is free. The plan reserves no room of a node that it drains.",
)
