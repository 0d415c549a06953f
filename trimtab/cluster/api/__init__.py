"""What does the API server write, as far as we read it?

Shapes of JSON, decoded by msgspec: each names only the fields somebody in this house reads, keeps quantities
as they were written, and drops the rest. A field that is absent is `UNSET`, which is not the same as empty:
a patch must know whether `resources` is missing or `{}`.

Every change to a pod, ours or a server step's, is made on these shapes (`change`), and a patch is the
difference of two; so every field that may be changed is named here.

    meta                   what all objects share; label selectors
    pod                    Pod and what is below it
    core                   Namespace, RuntimeClass, LimitRange, ResourceQuota, PriorityClass, Node
    workload               what owns pods: ReplicaSet, Deployment, Job, …; PodDisruptionBudget
    autoscaling            VerticalPodAutoscaler, HorizontalPodAutoscaler, CapacityBuffer
    storage                PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode
    devices                ResourceClaim, ResourceSlice, DeviceClass
    admissionregistration  webhook configurations
"""
