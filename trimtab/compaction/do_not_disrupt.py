"""Karpenter's annotation with which a pod must not be evicted, for ever or for a while after its start."""

from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds, parse_duration
from trimtab.compaction import reasons as r
from trimtab.compaction.candidates import DO_NOT_DISRUPT, keep_reason


def do_not_disrupt_reason(pod: PodInfo, now: Seconds | None) -> Reason | None:
    """Returns the reason if do-not-disrupt keeps the pod, otherwise None. Its value is `true`, or a Go duration that
    counts from the pod's start (Karpenter's rule)."""
    value = pod.annotations.get(DO_NOT_DISRUPT)
    duration = parse_duration(value) if value is not None else None
    if value is None or duration is None:
        return keep_reason(f"pod {pod.key}", DO_NOT_DISRUPT, value, r.UNSAFE)
    started = pod.started if pod.started is not None else pod.created
    if now is None or started is None or now < started + duration:
        return r.UNSAFE(f"pod {pod.key} has the annotation {DO_NOT_DISRUPT}: {value}")
    return None
