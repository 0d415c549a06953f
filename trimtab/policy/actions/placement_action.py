"""The placement action as one object: in words, for lint, and compiled to CEL."""

from collections.abc import Iterable, Iterator

from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import requirement_matches
from trimtab.policy import reasons
from trimtab.policy.actions import reasons as lint_reasons
from trimtab.policy.actions.action import Action, FieldValues, PolicyTerms, no_comparison, no_match_fields, not_always
from trimtab.policy.actions.labels import find_missing_namespace_labels
from trimtab.policy.actions.placement import find_unmet_field, format_requirement, propose_changes
from trimtab.policy.actions.placement_fields import NodeLabel, PlacementAction
from trimtab.policy.affinity_conflicts import find_contradiction
from trimtab.policy.cel import NotExpressible, cel_string
from trimtab.policy.cel_patches import PatchPart
from trimtab.policy.cluster_facts import ClusterFacts


def _describe(settings: PlacementAction) -> Iterator[str]:
    for label in settings.require:
        yield f"requires the node label {_describe_label(label)}"
    if settings.require_any:
        groups = (" and ".join(map(_describe_label, group)) for group in settings.require_any)
        yield f"requires one of these node labels: {'; or '.join(groups)}"
    for label in settings.prefer:
        yield f"prefers the node label {_describe_label(label)}"
    for key, value in (settings.node_selector or {}).items():
        yield f"sets the node selector {key}={value}"
    for taint in settings.tolerate:
        value = taint.value or "*"
        if taint.value_from_namespace:
            value = f"(the namespace's label {taint.value_from_namespace})"
        elif taint.value_from_pod:
            value = f"(the pod's label {taint.value_from_pod}, one of {', '.join(taint.among)})"
        yield f"tolerates the taint {taint.key or '*'}={value}:{taint.effect or '*'}"


def _describe_label(label: NodeLabel) -> str:
    if label.in_namespace_label is not None:
        return f"{label.label} with the value of the namespace's label {label.in_namespace_label}"
    if label.in_pod_label is not None:
        return f"{label.label} with the value of the pod's label {label.in_pod_label}, one of {', '.join(label.among)}"
    return f"{label.label} {format_requirement(label.selector_requirement)}"


def _list_values(settings: PlacementAction) -> FieldValues:
    for key, value in (settings.node_selector or {}).items():
        yield f"nodeSelector[{key}]", value
    for label in settings.require:
        yield f"require[{label.label}]", format_requirement(label.selector_requirement)
    for label in settings.prefer:
        weight = "default weight" if label.weight is None else f"weight {label.weight}"
        yield f"prefer[{label.label} {format_requirement(label.selector_requirement)}]", weight
    for taint in settings.tolerate:
        name = f"{taint.key or 'every taint'}={taint.value or ''}:{taint.effect or 'every effect'}"
        yield f"tolerations[{name}]", "without end" if taint.seconds is None else f"for {taint.seconds} s"


def _find_odd(settings: PlacementAction, terms: PolicyTerms) -> Iterator[Reason]:
    needed = [SelectorRequirement(key=k, operator="In", values=(v,)) for k, v in (settings.node_selector or {}).items()]
    needed += [label.selector_requirement for label in settings.require]
    impossible = find_contradiction(PodSpec(), needed)
    if impossible:
        yield lint_reasons.NO_SUCH_NODE(impossible)
    for group in settings.require_any if not impossible else ():
        impossible = find_contradiction(PodSpec(), [*needed, *(label.selector_requirement for label in group)])
        if impossible:
            yield lint_reasons.NO_SUCH_NODE(f"one group of requireAny cannot be met: {impossible}")
    for word, labels in (("require", settings.require), *(("requireAny", group) for group in settings.require_any)):
        for label in labels:
            if label.weight is not None:
                yield lint_reasons.WEIGHT_UNREAD(
                    f"placement.{word} for {label.label} has a weight ({label.weight}), which has no effect"
                )


def _find_missing(settings: PlacementAction, terms: PolicyTerms, facts: ClusterFacts) -> Iterator[Reason]:
    yield from _find_unmatched_nodes(settings, facts)
    groups = (settings.require, *settings.require_any, settings.prefer)
    labels = [label.in_namespace_label for group in groups for label in group if label.in_namespace_label]
    labels += [taint.value_from_namespace for taint in settings.tolerate if taint.value_from_namespace]
    yield from find_missing_namespace_labels(labels, facts)


def _find_unmatched_nodes(settings: PlacementAction, facts: ClusterFacts) -> Iterator[Reason]:
    shapes = facts.nodes.shapes
    # Without any node nothing can be concluded: the snapshot may simply not contain nodes.
    if not shapes:
        return
    for label in settings.require:
        if not any(requirement_matches(label.selector_requirement, shape.labels) for shape in shapes):
            kind = f"{label.label} {format_requirement(label.selector_requirement)}"
            yield reasons.NOT_IN_CLUSTER(f"the cluster has no node with the label {kind}")
        # A pod that chooses a value without nodes would stay Pending.
        for value in label.among:
            if not any(shape.labels.get(label.label) == value for shape in shapes):
                yield reasons.NOT_IN_CLUSTER(
                    f"the cluster has no node with the label {label.label} In {value}, which a pod may choose"
                )
    for group in settings.require_any:
        requirements = [label.selector_requirement for label in group]
        if not any(all(requirement_matches(item, shape.labels) for item in requirements) for shape in shapes):
            kind = " and ".join(f"{item.key} {format_requirement(item)}" for item in requirements)
            yield reasons.NOT_IN_CLUSTER(f"no node has the labels {kind}, which one group of requireAny requires")


def _require(settings: PlacementAction, terms: PolicyTerms) -> FieldValues:
    if settings.prefer or settings.tolerate:
        field = "prefer" if settings.prefer else "tolerate"
        raise NotExpressible(
            f"spec.actions.placement.{field}: CEL cannot check this field; use a separate policy for `require`"
        )
    if settings.require_any:
        raise NotExpressible(
            "spec.actions.placement.requireAny: CEL cannot combine its groups with the node affinity terms that the "
            "pod already has"
        )
    if any(label.in_namespace_label for label in settings.require):
        raise NotExpressible(
            "spec.actions.placement.require: the value of inNamespaceLabel depends on the namespace, which CEL "
            "does not read"
        )
    if any(label.in_pod_label for label in settings.require):
        raise NotExpressible(
            "spec.actions.placement.require: the value of inPodLabel depends on the pod as it was submitted"
        )
    node_selector = "object.spec.nodeSelector"
    for key, value in sorted((settings.node_selector or {}).items()):
        name = cel_string(key)
        expression = (
            f"has({node_selector}) && {name} in {node_selector} && {node_selector}[{name}] == {cel_string(value)}"
        )
        yield f"nodeSelector[{key}]", expression
    node_terms = "object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    for label in settings.require:
        has_affinity = "has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) && " + f"has({node_terms})"
        required = _requirement_expression(label.selector_requirement)
        has_requirement = f"has(t.matchExpressions) && t.matchExpressions.exists(e, {required})"
        yield (
            f"nodeAffinity.required[{label.label}]",
            f"{has_affinity} && {node_terms}.nodeSelectorTerms.all(t, {has_requirement})",
        )


def _requirement_expression(requirement: SelectorRequirement) -> str:
    values = f"[{', '.join(map(cel_string, requirement.values))}]"
    listed = f" && has(e.values) && e.values == {values}" if requirement.values else ""
    return f"e.key == {cel_string(requirement.key)} && e.operator == {cel_string(requirement.operator)}{listed}"


def _compile(settings: PlacementAction, terms: PolicyTerms) -> Iterable[PatchPart]:
    # Only a compiler needs it: commands that compile nothing start without.
    from trimtab.policy.actions.placement_in_cel import compile_placement

    return compile_placement(settings, terms)


def _list_differences(_settings: PlacementAction) -> tuple[str, ...]:
    return ("own-contradiction",)


ACTION = Action(
    name="placement",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=not_always,
    list_match_fields=no_match_fields,
    find_odd=_find_odd,
    find_missing=_find_missing,
    compile=_compile,
    require=_require,
    order_matters=False,
    affects=frozenset({"nodes"}),
    list_differences=_list_differences,
)
