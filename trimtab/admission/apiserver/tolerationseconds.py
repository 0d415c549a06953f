"""How long does a pod stay on a node that is lost?

The DefaultTolerationSeconds plugin (plugin/pkg/admission/defaulttolerationseconds/admission.go, 1.36), with the
server's default of 300 s for both.
"""

from trimtab.admission.apiserver.outcome import Refused
from trimtab.cluster.api.meta import change, get
from trimtab.cluster.api.pod import Pod, Toleration
from trimtab.policy.facts import Facts

PLUGIN = "DefaultTolerationSeconds"
LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit(pod: Pod, facts: Facts, namespace: str) -> Pod | Refused:
    """The pod tolerating both taints for 300 s, unless it says something of that taint itself. Never refuses."""
    present = get(pod.spec.tolerations, ())
    missing = tuple(_five_minutes(key) for key in LOST if not any(_speaks_of(t, key) for t in present))
    return change(pod, spec=change(pod.spec, tolerations=present + missing)) if missing else pod


def _speaks_of(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", "NoExecute")


def _five_minutes(key: str) -> Toleration:
    return Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=300)
