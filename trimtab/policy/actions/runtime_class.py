"""Sets the RuntimeClass of pods.

A pod's overhead follows from its class: in the same admission request, the API server's RuntimeClass admission plugin
fills in `spec.overhead`, node selector and tolerations from the class. So, if the plugin is on, only `runtimeClassName`
is written.
"""

from collections.abc import Iterator

from trimtab.cluster.api.core import RuntimeClass
from trimtab.cluster.api.meta import UNSET, change, value_or
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import is_covered
from trimtab.policy import reasons
from trimtab.policy.actions.action import (
    WRITTEN,
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_odd_values,
    override_suffix,
)
from trimtab.policy.affinity_conflicts import find_contradiction
from trimtab.policy.cel import cel_string, join_all
from trimtab.policy.cel_patches import PatchPart, operation, pointer
from trimtab.policy.cel_pod import HAS_NO_NODE, HAS_REQUIRED_TERMS, IS_APPLIED, IS_DAEMON, IS_WINDOWS, REQUIRED_TERMS
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.field_owners import grows_applied
from trimtab.policy.field_types import Flag, ObjectName, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

FIELD = "runtimeClassName"


@policy_type
class RuntimeClassChoice:
    """The RuntimeClass that pods get. The class defines their overhead."""

    name: ObjectName
    """A RuntimeClass of the cluster. If it does not exist, the pod stays unchanged, with a warning."""
    override: Flag = False
    """Replace a class that the pod's author has chosen, together with everything that was added to the pod because of
    that class."""
    required: Required = False


def propose_changes(settings: RuntimeClassChoice, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the class, or records why it is not set."""
    before = value_or(changes.spec.runtime_class_name, None)
    if before == settings.name:
        changes.decide_first(FIELD, settings.name)
        return
    obstacle = _find_obstacle(settings, changes, before)
    if obstacle is not None:
        changes.leave_unchanged(FIELD, obstacle, loud=obstacle.code is not reasons.ALREADY_SET)
        return
    reason = reasons.POLICY_SAYS(f"the policy says {settings.name}")
    if changes.claim_field(
        FIELD, before, settings.name, reason, replaces=bool(before) or _applied_list_that_grows(settings, changes)
    ):
        # None if the old class was deleted: then only the overhead can be recognised as its own.
        old = changes.pod_context.facts.runtime_classes.get(before or "")
        changes.spec = change(_clean_up_old_class(changes, old), runtime_class_name=settings.name)


def find_unmet_field(settings: RuntimeClassChoice, result: PodBeforeAndAfter) -> str | None:
    """Returns the field `runtimeClassName` if the pod has another class or none, otherwise None."""
    return None if value_or(result.spec.runtime_class_name, None) == settings.name else FIELD


def _applied_list_that_grows(settings: RuntimeClassChoice, changes: PodChanges) -> str:
    """Returns the name of a list that the class would extend but that the author will apply again; empty if there is
    none. With the additional entry, the API server would refuse the second apply."""
    class_scheduling = changes.pod_context.facts.runtime_classes[settings.name].scheduling
    present, selector = value_or(changes.spec.tolerations, ()), value_or(changes.spec.node_selector, {})
    has_tolerations = all(is_covered(toleration, present) for toleration in class_scheduling.tolerations)
    if not has_tolerations and grows_applied(changes.pod_context, "tolerations"):
        return "tolerations"
    has_selector = class_scheduling.node_selector.items() <= selector.items()
    return "nodeSelector" if not has_selector and grows_applied(changes.pod_context, "nodeSelector") else ""


def _find_obstacle(settings: RuntimeClassChoice, changes: PodChanges, before: str | None) -> Reason | None:
    """Returns why the class cannot be set, or None if nothing prevents it."""
    facts = changes.pod_context.facts
    # The author writes `spec.os` freely, so it does not exempt a pod from a required action.
    if changes.pod_context.is_windows and not settings.required:
        return reasons.WINDOWS("policies do not set a RuntimeClass on a Windows pod")
    if before and not settings.override:
        return reasons.ALREADY_SET(f"the pod itself names RuntimeClass {before}")
    if "RuntimeClass" not in facts.listed_kinds:
        return reasons.FACTS_MISSING("the list of RuntimeClasses has not been read yet")
    new_class = facts.runtime_classes.get(settings.name)
    if new_class is None:
        return reasons.RUNTIME_CLASS_NOT_FOUND(f"RuntimeClass {settings.name} does not exist")
    node_bound = None if settings.required else _find_node_bound(new_class, changes)
    return node_bound or _find_conflict(new_class, changes, facts.runtime_classes.get(before or ""))


def _find_node_bound(new_class: RuntimeClass, changes: PodChanges) -> Reason | None:
    """Returns why the pod is already tied to a node, so that no class may change its scheduling; None if it is not."""
    if changes.spec.node_name:
        return reasons.ON_ITS_NODE(
            f"the pod itself names node {changes.spec.node_name}, so its scheduling is not changed"
        )
    is_daemon = changes.pod_context.is_daemon
    if is_daemon and not changes.names_daemons and new_class.scheduling.node_selector:
        return reasons.DAEMON(
            f"the pod belongs to a DaemonSet, but RuntimeClass {new_class.metadata.name} selects nodes"
        )
    return None


def _find_conflict(new_class: RuntimeClass, changes: PodChanges, old_class: RuntimeClass | None) -> Reason | None:
    """Returns why the API server would refuse the pod with this class, or why no node could run it; None if neither is
    the case."""
    spec = _without_class_scheduling(changes.spec, old_class)
    selector = value_or(spec.node_selector, {})
    for key, value in new_class.scheduling.node_selector.items():
        # RuntimeClass admission merges selectors and refuses the pod on a conflict (plugin/pkg/admission/runtimeclass).
        if selector.get(key, value) != value:
            sentence = (
                f"RuntimeClass {new_class.metadata.name} requires {key}={value}, but the pod selects "
                f"{key}={selector[key]}"
            )
            return reasons.RUNTIME_CLASS_CONFLICT(sentence)
    merged = change(spec, node_selector={**selector, **new_class.scheduling.node_selector})
    impossible = find_contradiction(merged)
    return (
        reasons.RUNTIME_CLASS_CONFLICT(f"RuntimeClass {new_class.metadata.name}: {impossible}") if impossible else None
    )


def _without_class_scheduling(spec: PodSpec, old_class: RuntimeClass | None) -> PodSpec:
    """Returns the spec without the node selector and tolerations that the old class added."""
    if old_class is None:
        return spec
    class_scheduling = old_class.scheduling
    # Entries equal to those of the class count as the class's own.
    selector = {k: v for k, v in value_or(spec.node_selector, {}).items() if class_scheduling.node_selector.get(k) != v}
    tolerations = tuple(t for t in value_or(spec.tolerations, ()) if t not in class_scheduling.tolerations)
    return change(spec, node_selector=selector or UNSET, tolerations=tolerations or UNSET)


def _clean_up_old_class(changes: PodChanges, old_class: RuntimeClass | None) -> PodSpec:
    """Returns the spec without what was added for the old class, and records each removal. With the old overhead, the
    API server would answer 403; the old node selector and tolerations would stay for ever."""
    spec = changes.spec
    if spec.overhead is not UNSET:
        cleanup = reasons.CLEANED_UP("the field belonged to the previous RuntimeClass of the pod")
        changes.record_change(
            "overhead",
            ", ".join(f"{name} {value}" for name, value in sorted(value_or(spec.overhead, {}).items())),
            None,
            cleanup,
        )
        spec = change(spec, overhead=UNSET)
    if old_class is None:
        return spec
    bare = _without_class_scheduling(spec, old_class)
    cleanup = reasons.CLEANED_UP(f"the previous RuntimeClass {old_class.metadata.name} had added this value")
    for name, before, after in (
        ("nodeSelector", spec.node_selector, bare.node_selector),
        ("tolerations", spec.tolerations, bare.tolerations),
    ):
        # The whole list is recorded as one change, because entries of the class and of the author cannot be told apart
        # later.
        if before != after:
            changes.record_change(name, "the value of the previous RuntimeClass", None, cleanup)
    return bare


def _describe(settings: RuntimeClassChoice) -> Iterator[str]:
    yield f"sets the RuntimeClass {settings.name}{override_suffix(settings.override)}"


def _list_values(settings: RuntimeClassChoice) -> FieldValues:
    yield FIELD, settings.name


def _list_decided(settings: RuntimeClassChoice) -> dict[str, int]:
    return {FIELD: WRITTEN}


def _list_match_fields(settings: RuntimeClassChoice) -> tuple[str, ...]:
    return (FIELD,)


def _find_missing(settings: RuntimeClassChoice, terms: PolicyTerms, facts: ClusterFacts) -> Iterator[Reason]:
    runtime_class = facts.runtime_classes.get(settings.name)
    if runtime_class is None:
        is_denied = terms.is_enabled and settings.required
        denies = ", so every pod that the policy matches is denied" if is_denied else ""
        yield reasons.RUNTIME_CLASS_NOT_FOUND(f"RuntimeClass {settings.name} does not exist{denies}")
    elif facts.nodes.shapes:
        selector = runtime_class.scheduling.node_selector
        # Cordoned nodes count here: they may take pods again.
        shapes = (*facts.nodes.shapes, *facts.nodes.closed)
        if not any(all(shape.labels.get(key) == value for key, value in selector.items()) for shape in shapes):
            labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
            yield reasons.NOT_IN_CLUSTER(
                f"RuntimeClass {runtime_class.metadata.name} selects nodes with {labels}, but the cluster has no "
                "such node"
            )


_CLASS, _SELECTOR = "object.spec.runtimeClassName", "object.spec.nodeSelector"
_NEEDED = "(has(params.scheduling) && has(params.scheduling.nodeSelector) ? params.scheduling.nodeSelector : {})"


def _compile(settings: RuntimeClassChoice, terms: PolicyTerms) -> Iterator[PatchPart]:
    # The RuntimeClass itself is the parameter of the compiled policy. If it does not exist, the policy is not evaluated
    # at all (`parameterNotFoundAction: Allow`), so no pod is refused. The API server itself adds the overhead, node
    # selector and tolerations of the class afterwards.
    name = cel_string(settings.name)
    named = f"has({_CLASS}) && {_CLASS} != ''"
    tests = [f"!({named})"]
    if settings.override:
        tests = [f"!({named}) || ({_CLASS} != {name} && !{IS_APPLIED})"]
    if not settings.required:
        tests += [f"!{IS_WINDOWS}", HAS_NO_NODE]
        if not terms.names_daemons:
            tests.append(f"!({IS_DAEMON}) || {_NEEDED}.size() == 0")
    tests += list(_fits_the_class())
    # An apply of the pod itself compares tolerations and node selectors as a whole, and the class adds to both.
    tests.append(f"!{IS_APPLIED} || !has(params.scheduling)")
    remove = operation("remove", pointer("spec", "overhead"))
    yield PatchPart(
        name="runtimeClassName",
        test=join_all(tests),
        reads_late=True,
        runtime_class=settings.name,
        operations=f"[{operation('add', pointer('spec', 'runtimeClassName'), name)}] + "
        f"(has(object.spec.overhead) ? [{remove}] : [])",
        note=cel_string(f"runtimeClassName={settings.name}"),
    )


def _fits_the_class() -> Iterator[str]:
    """Yields the conditions under which a node can satisfy both the class and the pod.

    Their node selectors must not contradict each other, and at least one required term of the pod must not contradict
    the class."""
    yield f"!has({_SELECTOR}) || {_NEEDED}.all(k, !(k in {_SELECTOR}) || {_SELECTOR}[k] == {_NEEDED}[k])"
    value = f"{_NEEDED}[e.key]"
    conflict = (
        f"e.key in {_NEEDED} && (e.operator == 'DoesNotExist' || (e.operator == 'In' && !({value} in e.values)) || "
        f"(e.operator == 'NotIn' && {value} in e.values))"
    )
    impossible = f"has(t.matchExpressions) && t.matchExpressions.exists(e, {conflict})"
    yield f"!{HAS_REQUIRED_TERMS} || {REQUIRED_TERMS}.exists(t, !({impossible}))"


def _require(settings: RuntimeClassChoice, terms: PolicyTerms) -> FieldValues:
    yield FIELD, f"has({_CLASS}) && {_CLASS} == {cel_string(settings.name)}"


def _list_differences(settings: RuntimeClassChoice) -> tuple[str, ...]:
    return ("old-class",) if settings.override else ()


ACTION = Action(
    name="runtime_class",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=_list_decided,
    list_match_fields=_list_match_fields,
    find_odd=no_odd_values,
    find_missing=_find_missing,
    compile=_compile,
    require=_require,
    order_matters=True,
    affects=frozenset({"nodes", "quotas"}),
    list_differences=_list_differences,
)
