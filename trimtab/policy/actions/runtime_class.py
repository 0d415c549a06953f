"""Which RuntimeClass should this pod run under?

The class is the one lever for pod overhead: the API server's RuntimeClass admission fills `spec.overhead`, node
selector and tolerations from it in the same request. So by default nothing but `runtimeClassName` is written.
"""

from trimtab.cluster.api.core import RuntimeClass
from trimtab.cluster.api.meta import UNSET, change, get
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import covered
from trimtab.policy import reasons
from trimtab.policy.affinity_conflicts import contradiction
from trimtab.policy.field_owners import grows_applied
from trimtab.policy.field_types import Flag, ObjectName, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

FIELD = "runtimeClassName"


@policy_type
class RuntimeClassChoice:
    """The class a pod runs under; its overhead comes with it."""

    name: ObjectName
    """A RuntimeClass of the cluster. Where it does not exist the pod is left as it is, with a warning."""
    override: Flag = False
    """Replace another class that the pod names itself, with what that class had brought."""
    required: Required = False


def propose_changes(settings: RuntimeClassChoice, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Set the class, or say why not."""
    before = get(draft.spec.runtime_class_name, None)
    if before == settings.name:
        draft.decide_first(FIELD, settings.name)
        return
    obstacle = _obstacle(settings, draft, before)
    if obstacle is not None:
        draft.leave_unchanged(FIELD, obstacle, loud=obstacle.code is not reasons.ALREADY_SET)
        return
    reason = reasons.POLICY_SAYS(f"the policy says {settings.name}")
    if draft.claim_field(FIELD, before, settings.name, reason, replaces=bool(before) or _kept_list(settings, draft)):
        old = draft.subject.facts.runtime_classes.get(before or "")
        draft.spec = change(_without_old(draft, old), runtime_class_name=settings.name)


def find_unmet_field(settings: RuntimeClassChoice, result: PodBeforeAndAfter) -> str | None:
    """The field, where the pod would run under another class, or under none."""
    return None if get(result.spec.runtime_class_name, None) == settings.name else FIELD


def _kept_list(settings: RuntimeClassChoice, draft: PodChanges) -> str:
    """What the class would bring something to and its author applies again as a whole; empty where there is nothing."""
    brought = draft.subject.facts.runtime_classes[settings.name].scheduling
    present, selector = get(draft.spec.tolerations, ()), get(draft.spec.node_selector, {})
    tolerates = all(covered(toleration, present) for toleration in brought.tolerations)
    if not tolerates and grows_applied(draft.subject, "tolerations"):
        return "tolerations"
    selects = brought.node_selector.items() <= selector.items()
    return "nodeSelector" if not selects and grows_applied(draft.subject, "nodeSelector") else ""


def _obstacle(settings: RuntimeClassChoice, draft: PodChanges, before: str | None) -> Reason | None:
    facts = draft.subject.facts
    if draft.subject.is_windows and not settings.required:  # the author writes `os`, and that exempts no pod
        return reasons.WINDOWS("a Windows pod gets no RuntimeClass by policy")
    if before and not settings.override:
        return reasons.ALREADY_SET(f"the pod names RuntimeClass {before} itself")
    if "RuntimeClass" not in facts.known:
        return reasons.FACTS_MISSING("RuntimeClasses are not listed yet")
    wanted = facts.runtime_classes.get(settings.name)
    if wanted is None:
        return reasons.RUNTIME_CLASS_NOT_FOUND(f"RuntimeClass {settings.name} does not exist")
    bound = None if settings.required else _bound_to_nodes(wanted, draft)
    return bound or _conflict(wanted, draft, facts.runtime_classes.get(before or ""))


def _bound_to_nodes(wanted: RuntimeClass, draft: PodChanges) -> Reason | None:
    """Does the pod have its node, or its nodes, whatever the class asks of them?"""
    if draft.spec.node_name:
        return reasons.ON_ITS_NODE(f"the pod names node {draft.spec.node_name} itself")
    daemon = draft.subject.is_daemon
    if daemon and not draft.names_daemons and wanted.scheduling.node_selector:
        return reasons.DAEMON(f"the pod belongs to a DaemonSet, and RuntimeClass {wanted.metadata.name} selects nodes")
    return None


def _conflict(wanted: RuntimeClass, draft: PodChanges, old: RuntimeClass | None) -> Reason | None:
    """Would the API server refuse the pod under this class, or no node take it?"""
    spec = _bare(draft.spec, old)
    selector = get(spec.node_selector, {})
    for key, value in wanted.scheduling.node_selector.items():
        if selector.get(key, value) != value:
            sentence = f"RuntimeClass {wanted.metadata.name} needs {key}={value}, the pod selects {key}={selector[key]}"
            return reasons.RUNTIME_CLASS_CONFLICT(sentence)
    merged = change(spec, node_selector={**selector, **wanted.scheduling.node_selector})
    impossible = contradiction(merged)
    return reasons.RUNTIME_CLASS_CONFLICT(f"RuntimeClass {wanted.metadata.name}: {impossible}") if impossible else None


def _bare(spec: PodSpec, old: RuntimeClass | None) -> PodSpec:
    """The pod without what its old class had brought."""
    if old is None:
        return spec
    brought = old.scheduling
    selector = {k: v for k, v in get(spec.node_selector, {}).items() if brought.node_selector.get(k) != v}
    tolerations = tuple(t for t in get(spec.tolerations, ()) if t not in brought.tolerations)
    return change(spec, node_selector=selector or UNSET, tolerations=tolerations or UNSET)


def _without_old(draft: PodChanges, old: RuntimeClass | None) -> PodSpec:
    """Cleans up after the old class: its overhead, or the server answers 403; its scheduling, or it stays for ever."""
    spec = draft.spec
    if spec.overhead is not UNSET:
        draft.record_change("overhead", _amounts(spec), None, reasons.CLEANED_UP("it was the old class's"))
        spec = change(spec, overhead=UNSET)
    if old is None:
        return spec
    bare = _bare(spec, old)
    brought = reasons.CLEANED_UP(f"RuntimeClass {old.metadata.name} had brought it")
    for name, before, after in (
        ("nodeSelector", spec.node_selector, bare.node_selector),
        ("tolerations", spec.tolerations, bare.tolerations),
    ):
        if before != after:
            draft.record_change(name, "the old class's", None, brought)
    return bare


def _amounts(spec: PodSpec) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(get(spec.overhead, {}).items()))
