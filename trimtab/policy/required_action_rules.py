"""Checks policies that have a `required` action.

Such an action causes pods to be refused. So the policy must name its namespaces, must exclude those that the cluster
and Trimtab need, and must not exempt a pod by a field that the pod's own author sets.
"""

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.selectors import name_matcher
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.conditions import Conditions
from trimtab.policy.field_deciders import CONDITION_FIELDS
from trimtab.policy.pod_context import DEFAULT_SETTINGS
from trimtab.policy.podpolicy import Actions, Spec


def required_actions(actions: Actions) -> tuple[str, ...]:
    """Returns the names, as in `Actions`, of the required actions."""
    configured = ((name, getattr(actions, name)) for name in Actions.__dataclass_fields__)
    return tuple(name for name, settings in configured if settings is not None and settings.required)


def requirement_mistakes(document: Document, spec: Spec) -> Iterator[ConfigError]:
    """Yields the mistakes in the `match` of a policy with a required action. There are none if no action is
    required."""
    if not required_actions(spec.actions):
        return
    namespaces = spec.match.namespaces
    # Without a namespace a mistake in the policy could deny pods of the whole cluster.
    if namespaces is None or not (namespaces.include or namespaces.selector):
        path = ("spec", "match") if namespaces is None else ("spec", "match", "namespaces")
        yield document.error_at(
            path,
            "namespaces with `include` or `selector`, because an action is `required`",
            "none",
            "name the namespaces in which a pod may be denied",
        )
    elif namespaces.include:
        is_included, is_excluded = name_matcher(namespaces.include), name_matcher(namespaces.exclude)
        protected = sorted({*DEFAULT_SETTINGS.system_namespaces, DEFAULT_SETTINGS.own_namespace})
        included = [name for name in protected if is_included(name) and not is_excluded(name)]
        if included:
            yield document.error_at(
                ("spec", "match", "namespaces", "include"),
                "namespaces other than those of Kubernetes and of Trimtab, because an action is `required`",
                ", ".join(included),
                "exclude these namespaces with `exclude`, or narrow the pattern",
            )
    yield from _author_condition_mistakes(document, spec.match, ("spec", "match"))
    for index, excluded in enumerate(spec.match.exclude):
        yield from _author_condition_mistakes(document, excluded, ("spec", "match", "exclude", index))


def _author_condition_mistakes(
    document: Document, conditions: Conditions, path: tuple[str | int, ...]
) -> Iterator[ConfigError]:
    for name, field in CONDITION_FIELDS.items():
        values = getattr(conditions, name) if field.is_always_refused else None
        if values:
            word = to_camel(name)
            yield document.error_at(
                (*path, word),
                f"no {word}, because an action is `required` and the pod's author chooses {word}",
                ", ".join(values),
                "match by namespace, or remove `required`",
            )


def chosen_place_mistakes(document: Document, spec: Spec) -> Iterator[ConfigError]:
    """Yields a mistake if the policy lets the author of a pod in any namespace choose the placement by a label. Such a
    policy must name the namespaces."""
    placement = spec.actions.placement
    if placement is None:
        return
    groups = (placement.require, *placement.require_any, placement.prefer)
    label_keys = [label.in_pod_label for group in groups for label in group if label.in_pod_label is not None]
    label_keys += [taint.value_from_pod for taint in placement.tolerate if taint.value_from_pod is not None]
    namespaces = spec.match.namespaces
    is_bounded = namespaces is not None and (
        namespaces.selector is not None
        or (bool(namespaces.include) and all(name.strip("*") for name in namespaces.include))
    )
    if label_keys and not is_bounded:
        yield document.error_at(
            ("spec", "match"),
            "namespaces with `include` or `selector`, because a label of the pod chooses its placement",
            ", ".join(label_keys),
            "name the namespaces whose pods may choose among the values that are listed",
        )
