"""Simulates the API server's admission of a pod, with Trimtab's webhook in the chain.

One step per file, each a function of (pod, facts, namespace) → Pod | PodRejected. `run_admission_chain` runs them in
the server's order around the two calls of the webhook, and returns the stored pod and the steps that changed it, or the
rejection in the server's words. Tests compare with kube-apiserver 1.36.3: stored pods are equal, rejections have the
same code and text.

    outcome                PodAdmitted, PodRejected, ChainStep
    admission_chain        all steps, twice if the webhook changed something
    defaulting             rejects unreadable quantities; requests from limits, pod-level requests, the fields
                           that every stored pod has
    limitranger            defaults and their annotation; min, max and ratio for containers and pods
    priority               class → number and preemption policy; tolerations of 300 s for a lost node
    runtimeclass           overhead, node selector and tolerations of the class, and the final check
    validate_pod           resources, host ports, placement, tolerations, overhead
    validate_names         validation of names
    resourcequota          the amounts that a quota requires, and the room that is left
    serialization          what survives JSON; equality as the server defines it
    resource_sums          sums in the server's notation

Simulated: the steps above with the default feature gates and plugins of 1.36.

Not simulated, because it changes nothing that Trimtab reads, or because the inputs are unknown here:
    other webhooks and MutatingAdmissionPolicies, and so a second call that *they* cause;
    plugins off by default (PodNodeSelector, PodTolerationRestriction, ExtendedResourceToleration, AlwaysPullImages);
    ServiceAccount (its token volume; a missing account is a 403), PodSecurity, NodeRestriction, PodTopologyLabels;
    names (generateName), namespace, status, and the label keys merged into selectors (`matchLabelKeys`) when stored;
    validation of fields that Trimtab never writes: images, volumes, probes, pod affinity, spread selectors, claims;
    races and caches: a class, LimitRange or quota that changed a second ago, quota that two pods request at once;
    random order: where the server iterates over a map (of LimitRanges, quotas or resources), the order here is by name.

A kind that is not in `facts.listed_kinds` was never listed: its plugin then does nothing here, because a missing
class may well exist.

Validation yields errors as the server formats them (`field: Invalid value: …: why`), none if the pod is valid. The
rules are those of pkg/apis/core/validation/validation.go and apimachinery pkg/api/validate/content, 1.36.
"""
