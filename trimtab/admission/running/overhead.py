"""Is the stored overhead the class's? And who fills it in: the API server, or nobody?

With RuntimeClass admission on, a pod that names a class with overhead cannot be stored without it, nor with another
one (plugin/pkg/admission/runtimeclass). So a pod younger than its class's last change, whose overhead is
missing, shows that the plugin is off; one whose overhead is there though we did not write it shows that it is on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from trimtab.admission.running import reasons
from trimtab.admission.running.submitted import Alike
from trimtab.admission.running.why import Moment
from trimtab.cluster.api.meta import get
from trimtab.cluster.api.rules import RuntimeClass
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.resources import same
from trimtab.policy.actions.overhead import FIELD, shown
from trimtab.policy.reasons import OVERHEAD_MISSING
from trimtab.policy.subject import OverheadBy


def finding(alike: Alike, created: Moment | None, found: RuntimeClass | None, since: Moment | None) -> Reason | None:
    """What is wrong with the stored overhead; None: nothing, or the class is not there to tell.

    since: when the class was last written, where that is known.
    """
    if found is None:
        return None
    name = found.metadata.name
    stored, defined = get(alike.pod.spec.overhead, {}), found.overhead.pod_fixed
    if same(defined, stored):
        return None
    if not stored and not _older(created, since):
        return OVERHEAD_MISSING(f"carries no overhead, RuntimeClass {name} defines {shown(defined)}")
    return reasons.OVERHEAD_STALE(
        f"carries overhead {shown(stored) or 'none'}, RuntimeClass {name} now defines {shown(defined) or 'none'}"
    )


LAG = 3.0
"""Seconds: times are whole ones, and an API server's own view of the classes is a little late."""


def _older(created: Moment | None, since: Moment | None) -> bool:
    """Was the class changed after the pod was made, or about then? Not where either is unknown."""
    return created is not None and since is not None and created < since + LAG


@dataclass(frozen=True, slots=True)
class Shown:
    """Who fills overhead in, and which pod shows it."""

    by: OverheadBy
    namespace: str
    pod: str
    created: Moment


Named = tuple[Alike, str, Moment | None]
"""Pods alike, one of their names, and when it was created."""


def who(pods: Iterable[Named], classes: Mapping[str, RuntimeClass], since: Mapping[str, Moment]) -> Shown | NotYet:
    """What the youngest pod shows that shows anything: the API server's flags may have changed since the others."""
    shown_by = [found for pod in pods if (found := _shows(*pod, classes, since)) is not None]
    if not shown_by:
        return NotYet(
            reason=reasons.NO_EVIDENCE("no running pod shows whether RuntimeClass admission is on"),
            have="none",
            need="one pod that names a RuntimeClass with overhead",
        )
    return max(shown_by, key=lambda found: (found.created, found.namespace, found.pod))


def _shows(
    alike: Alike, name: str, created: Moment | None, classes: Mapping[str, RuntimeClass], since: Mapping[str, Moment]
) -> Shown | None:
    found = classes.get(get(alike.pod.spec.runtime_class_name, ""))
    if found is None or not found.overhead.pod_fixed or created is None:
        return None
    by: Literal["server", "webhook"]
    if get(alike.pod.spec.overhead, {}):
        if alike.marker is not None and any(FIELD in fields for fields in alike.marker.by.values()):
            return None  # we wrote it; the plugin, where it is on, only agreed
        by = "server"
    elif _older(created, since.get(found.metadata.name)):
        return None  # older than the class's change: the class may have had none then
    else:
        by = "webhook"
    return Shown(by, alike.namespace, name, created)


def setting(terms: OverheadBy, shown_by: Shown | NotYet) -> Reason | None:
    """Is the setting `overhead` wrong? None: it is right, or nothing shows it."""
    if isinstance(shown_by, NotYet) or shown_by.by == terms:
        return None
    pod = f"{shown_by.namespace}/{shown_by.pod}"
    if shown_by.by == "server":
        return reasons.SETTING_WRONG(f"overhead: webhook, but the API server filled in that of pod {pod}: say server")
    return reasons.SETTING_WRONG(f"overhead: server, but nobody filled in that of pod {pod}: say webhook")
