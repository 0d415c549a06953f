"""What does the API server do to a pod around our webhook, and will it store it?

One step per file, each a function of (pod, facts, namespace) → Pod | Refused; `passes.admit` puts them in the server's
order around our two calls and tells the pod as stored, what changed it on the way, or who refused it in which words.
Held against kube-apiserver 1.36.3: stored pods equal, refusals by the same code and text.

    outcome             Stored, Refused, Step
    decoding            what cannot be read
    defaulting          requests from limits, pod-level requests, the fields every stored pod has (`rounding`)
    limitranger         defaults and their annotation; min, max, ratio for containers and pods (`bounds`)
    priority            class → number and preemption policy
    tolerationseconds   five minutes for a lost node
    runtimeclass        overhead, node selector, tolerations of the class (`tolerations`), and the check at the end
    validation          names, resources, host ports, placement, tolerations, overhead (`valid/`)
    quota               what must be specified; what is left
    passes              all of it, twice where our webhook changed something
    wire, sums          what survives JSON, equality as the server has it; sums as the server writes them

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
"""
