"""What must hold of a policy with a `required` action?

Such an action denies pods. So the policy names its namespaces, spares those that the cluster and Trimtab itself need,
and exempts no pod by a fact that the pod's own author chooses.
"""

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.selectors import glob
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.pod_context import DEFAULT_TERMS
from trimtab.policy.podpolicy import Actions, Conditions, Spec

_AUTHORS_FACTS = ("owners", "priority_classes", "annotations", "requests")
"""Conditions on facts that whoever creates a pod writes freely: an owner reference needs no owner."""


def required_actions(actions: Actions) -> tuple[str, ...]:
    """The names, as `Actions` has them, of the actions without which a pod must not run."""
    given = ((name, getattr(actions, name)) for name in Actions.__dataclass_fields__)
    return tuple(name for name, settings in given if settings is not None and settings.required)


def requirement_mistakes(document: Document, spec: Spec) -> Iterator[ConfigError]:
    """The mistakes in the `match` of a policy that has a `required` action; none where it has no such action."""
    if not required_actions(spec.actions):
        return
    namespaces = spec.match.namespaces
    if namespaces is None or not (namespaces.include or namespaces.selector):
        at = ("spec", "match") if namespaces is None else ("spec", "match", "namespaces")
        yield document.mistake(
            at, "namespaces with `include` or `selector`, because an action is `required`", "none",
            "name the namespaces in which a pod may be denied",
        )  # fmt: skip
    elif namespaces.include:
        is_included, is_excluded = glob(namespaces.include), glob(namespaces.exclude)
        spared = sorted({*DEFAULT_TERMS.system_namespaces, DEFAULT_TERMS.own_namespace})
        meant = [name for name in spared if is_included(name) and not is_excluded(name)]
        if meant:
            yield document.mistake(
                ("spec", "match", "namespaces", "include"),
                "namespaces other than the cluster's own and Trimtab's, because an action is `required`",
                ", ".join(meant), "leave them out with `exclude`, or narrow the pattern",
            )  # fmt: skip
    yield from _author_chooses(document, spec.match, ("spec", "match"))
    for index, excluded in enumerate(spec.match.exclude):
        yield from _author_chooses(document, excluded, ("spec", "match", "exclude", index))


def _author_chooses(document: Document, conditions: Conditions, at: tuple[str | int, ...]) -> Iterator[ConfigError]:
    for name in _AUTHORS_FACTS:
        given = getattr(conditions, name)
        if given:
            word = to_camel(name)
            yield document.mistake(
                (*at, word), f"no {word}, because an action is `required` and the pod's author chooses them",
                ", ".join(given), "match by namespace, or take `required` away",
            )  # fmt: skip


def chosen_place_mistakes(document: Document, spec: Spec) -> Iterator[ConfigError]:
    """The mistake of a placement that the author of a pod chooses by a label alone, wherever the pod is made: the
    policy names the namespaces whose authors may choose.
    """
    placement = spec.actions.placement
    if placement is None:
        return
    groups = (placement.require, *placement.require_any, placement.prefer)
    chosen = [label.in_pod_label for group in groups for label in group if label.in_pod_label is not None]
    chosen += [taint.value_from_pod for taint in placement.tolerate if taint.value_from_pod is not None]
    spaces = spec.match.namespaces
    is_bounded = spaces is not None and (
        spaces.selector is not None or (bool(spaces.include) and all(name.strip("*") for name in spaces.include))
    )
    if chosen and not is_bounded:
        yield document.mistake(
            ("spec", "match"),
            "namespaces with `include` or `selector`, because a pod's label chooses its place", ", ".join(chosen),
            "name the namespaces whose pods may choose among the values that are listed",
        )  # fmt: skip
