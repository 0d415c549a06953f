"""Does a HorizontalPodAutoscaler count this pod's replicas by its requests?

Utilisation is use divided by request: whoever changes the request of such a pod changes the number of its replicas,
and whoever first gives it one wakes an autoscaler that could not count until then.
"""

from trimtab.cluster.api.scaling import HorizontalPodAutoscaler, Metric
from trimtab.policy.subject import Subject

KIND = "HorizontalPodAutoscaler"


def by_utilization(subject: Subject) -> bool:
    """For the pod or any of its owners; True where HPAs are not listed yet (the cautious reading)."""
    if KIND not in subject.facts.known:
        return True
    found = (subject.facts.hpas.get((subject.namespace, o.kind, o.name), ()) for o in subject.owners)
    return any(_by_utilization(hpa) for hpas in found for hpa in hpas)


def _by_utilization(hpa: HorizontalPodAutoscaler) -> bool:
    """One that names no metric is given 80% of cpu (pkg/apis/autoscaling/v2/defaults.go)."""
    if hpa.spec.target_cpu_utilization_percentage is not None or not hpa.spec.metrics:
        return True
    return any(map(_is_utilization, hpa.spec.metrics))


def _is_utilization(metric: Metric) -> bool:
    return any(source.target.type == "Utilization" for source in (metric.resource, metric.container_resource))
