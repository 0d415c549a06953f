"""Finds conditions of a policy's `match` that nothing in the cluster satisfies, such as a misspelt label.

Each condition is compared alone, with all pods or namespaces of the cluster, so that the finding names the one that is
wrong.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from trimtab.cluster.api.meta import Labels, LabelSelector
from trimtab.cluster.config_error import suggest_name
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import labels_match, name_matcher
from trimtab.policy import reasons
from trimtab.policy.conditions import NamespaceMatch
from trimtab.policy.match import namespace_name_test
from trimtab.policy.pod_context import NAME_LABEL
from trimtab.policy.podpolicy import PodPolicy

LabelValues = Mapping[str, frozenset[str]]
"""Label → all its values in the cluster."""


def collect_label_values(all_labels: Iterable[Labels]) -> LabelValues:
    """Returns the values of each label of these objects."""
    values: dict[str, set[str]] = {}
    for labels in all_labels:
        for key, value in labels.items():
            values.setdefault(key, set()).add(value)
    return {key: frozenset(of_key) for key, of_key in values.items()}


def find_unmatched_conditions(
    policy: PodPolicy, namespaces: Mapping[str, Labels], pod_values: LabelValues
) -> Iterator[Reason]:
    """Yields a finding for each namespace and label in `match` that nothing has.

    `namespaces`: name → labels, `pod_values`: the labels of all pods. Nothing is compared with an empty mapping,
    because nothing is known then.
    """
    match = policy.spec.match
    namespace_values = collect_label_values({NAME_LABEL: name, **labels} for name, labels in namespaces.items())
    for conditions in (match, *match.exclude):
        if pod_values:
            for key, pattern in (conditions.pod_labels or {}).items():
                yield from _find_unmatched_label("pod", key, (pattern,), name_matcher((pattern,)), pod_values)
            if conditions.pod_selector is not None:
                yield from _find_unmatched_selector("pod", conditions.pod_selector.api_selector, pod_values)
        if namespaces and conditions.namespaces is not None:
            yield from _find_unmatched_namespaces(conditions.namespaces, namespaces, namespace_values)


def _find_unmatched_namespaces(
    match: NamespaceMatch, namespaces: Mapping[str, Labels], values: LabelValues
) -> Iterator[Reason]:
    for name in match.include:
        if not any(fnmatchcase(existing, name) for existing in namespaces):
            yield reasons.NOT_IN_CLUSTER(_join(f"the cluster has no namespace {name}", suggest_name(name, namespaces)))
    if match.selector is None:
        return
    selector = match.selector.api_selector
    unmatched = list(_find_unmatched_selector("namespace", selector, values))
    yield from unmatched
    is_named = namespace_name_test(match.include, match.exclude)
    candidates = (name for name in namespaces if is_named(name))
    if not unmatched and not any(labels_match(selector, {NAME_LABEL: name, **namespaces[name]}) for name in candidates):
        yield reasons.NOT_IN_CLUSTER("no namespace of the cluster has all the labels that the policy selects")


def _find_unmatched_selector(what: str, selector: LabelSelector, values: LabelValues) -> Iterator[Reason]:
    for key, value in selector.match_labels.items():
        yield from _find_unmatched_label(what, key, (value,), value.__eq__, values)
    for one in selector.match_expressions:
        if one.operator == "In":
            yield from _find_unmatched_label(what, one.key, one.values, frozenset(one.values).__contains__, values)
        elif one.operator == "Exists":
            yield from _find_unmatched_label(what, one.key, ("*",), lambda value: True, values)


def _find_unmatched_label(
    what: str, key: str, wanted: tuple[str, ...], is_wanted: Callable[[str], bool], values: LabelValues
) -> Iterator[Reason]:
    """Yields a finding if no object has the label, or none has a wanted value of it."""
    if key not in values:
        yield reasons.NOT_IN_CLUSTER(_join(f"no {what} of the cluster has a label {key}", suggest_name(key, values)))
    elif not any(map(is_wanted, values[key])):
        text = f"no {what} of the cluster has the label {key}={' or '.join(wanted)}"
        yield reasons.NOT_IN_CLUSTER(_join(text, suggest_name(wanted[0], values[key]) if wanted else ""))


def _join(text: str, suggestion: str) -> str:
    return f"{text}; {suggestion}" if suggestion else text
