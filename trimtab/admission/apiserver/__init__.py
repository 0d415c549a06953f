"""What does the API server do to a pod around our webhook, and will it store it?

One step per file, each a function of (pod, facts, namespace) → Pod | PodRejected. `admission_chain.admit`
puts them in the server's order around our two calls and gives the pod as stored, what changed it on the way, or who
refused it in which words.
Held against kube-apiserver 1.36.3: stored pods equal, refusals by the same code and text.

    outcome                PodAdmitted, PodRejected, ChainStep
    admission_chain        all steps, twice where our webhook changed something
    defaulting             what cannot be read; requests from limits, pod-level requests, the fields every stored
                           pod has
    limitranger            defaults and their annotation; min, max and ratio for containers and pods
    priority               class → number and preemption policy; five minutes for a lost node
    runtimeclass           overhead, node selector and tolerations of the class, and the check at the end
    validate_pod           host ports, placement, tolerations, overhead
    validate_names,        the same for names and for resources
    validate_resources
    resourcequota          what must be specified; what is left
    serialization          what survives JSON; equality as the server has it
    resource_sums          sums as the server writes them

Simulated: the steps above with the default feature gates and plugins of 1.36.

Not simulated, because it changes nothing that we read or because nobody could know it here:
    other webhooks and MutatingAdmissionPolicies, and so a second call that *they* bring about;
    plugins off by default (PodNodeSelector, PodTolerationRestriction, ExtendedResourceToleration, AlwaysPullImages);
    ServiceAccount (its token volume; a missing account is a 403), PodSecurity, NodeRestriction, PodTopologyLabels;
    names (generateName), namespace, status, and the label keys merged into selectors (`matchLabelKeys`) when stored;
    validation of what we never write: images, volumes, probes, pod affinity, selectors of a spread, claims;
    race and cache: a class, LimitRange or quota that changed a second ago, quota that two pods want at once;
    chance: where the server walks a map (which of two LimitRanges, quotas or resources first), we go by name.

A kind that is not in `facts.known` was never listed: its plugin then does nothing here, rather than refuse a class
that may well exist.

Validation gives complaints as the server writes them (`field: Invalid value: …: why`), none where all is well. Facts
are those of pkg/apis/core/validation/validation.go and apimachinery pkg/api/validate/content, 1.36.
"""
