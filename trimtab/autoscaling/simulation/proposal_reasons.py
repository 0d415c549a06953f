"""The reasons for which a VPA is proposed, changed, kept, removed or not proposed."""

from trimtab.cluster.reason import Code

VPA_WORTH_IT = Code(
    "vpa-worth-it",
    "The usage of the workload is large and varies, but no VPA adapts its requests.",
    "Apply the proposed VPA.",
)
VPA_TOO_SMALL = Code(
    "vpa-too-small",
    "A VPA would save less than its evictions cost. The usage of the workload is small.",
    "Use a static request at the 95th percentile in place of a VPA. `trimtab recommend` names it.",
)
VPA_TOO_STEADY = Code(
    "vpa-too-steady",
    "The usage hardly varies, so a static request is as good as a VPA.",
    "Use a static request at the 95th percentile in place of a VPA. `trimtab recommend` names it.",
)
VPA_DIFFERS = Code(
    "vpa-differs",
    "Usage and nodes suggest other settings than the VPA has. It has no bounds, changes limits, or evicts pods that "
    "could be resized in place.",
    "Apply the proposed VPA.",
)
VPA_FITS = Code("vpa-fits", "The VPA is already the one that Trimtab would propose.", "Nothing.")
VPA_NEEDS_HISTORY = Code(
    "vpa-needs-history",
    "There is less than a day of usage, or fewer than 100 samples.",
    "Provide a longer history of usage.",
)
VPA_OWNED_BY_HPA = Code(
    "vpa-owned-by-hpa",
    "An HPA divides usage by every request that a VPA would change, so each would react to the other.",
    "Let the HPA use averageValue or a custom metric, then add a VPA.",
)
VPA_POD_LEVEL = Code(
    "vpa-pod-level-resources",
    "A VPA changes containers only, but the pod sets resources as a whole (`spec.resources`). The API server refuses "
    "a pod as soon as the sum of the containers is above the pod-level request.",
    "Size both together (`trimtab recommend --patch`), or remove the pod-level resources. Add a VPA then.",
)
VPA_REFUSED = Code(
    "vpa-requests-refused",
    "The VPA may set requests with which the API server refuses the pods. A LimitRange that the VPA does not respect "
    "forbids them. The VPA would evict pods, and their successors could not be created.",
    "Change the LimitRange or the containers' limits, then add a VPA.",
)
VPA_QUOTA = Code(
    "vpa-exceeds-quota",
    "A ResourceQuota has no room for what the workload's pods use at least. The VPA would evict pods, and the API "
    "server would refuse their successors.",
    "Raise the ResourceQuota, then add a VPA.",
)
VPA_CONTRADICTS_LINT = Code(
    "vpa-contradicts-lint",
    "`trimtab lint` would report an error with the proposed VPA. Mostly the pods start with a request below the "
    "least one that the VPA sets, so that the VPA evicts each new pod.",
    "Correct what the finding names, then add the VPA. `trimtab recommend --patch` raises a request.",
)
