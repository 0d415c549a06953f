"""docs/reference/compiled-fields.md: each field of a policy, and whether the API server can evaluate it itself.

Nothing here says whether a field compiles: each example is compiled, and the compiler says so, or names its problem.
"""

import re
from collections.abc import Iterator
from dataclasses import fields

import yaml
from pydantic.alias_generators import to_camel

from trimtab.policy.actions.request_fields import ResourceRequestRule
from trimtab.policy.all_actions import ACTIONS
from trimtab.policy.compiled.mutating_policy import compile_mutating_policy
from trimtab.policy.conditions import Match
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import Actions, PodPolicy, Spec

_HEAD = """\
# What compiles

`trimtab policies compile --to mutatingadmissionpolicy` compiles a policy whole or not at all, so that the API server
(Kubernetes 1.36 or newer) changes pods [without a webhook](../explanation/without-a-webhook.md). All fields of a policy
compile, but for the examples of this page. The examples were compiled when it was made.
"""
_YES, _USAGE, _OWN_NAMESPACE, _NO = "yes", "usage", "own namespace", "no"
_TITLES = {
    _USAGE: "Only with `--params usage`: the recommender's parameters, in the pod's namespace or in Trimtab's own",
    _OWN_NAMESPACE: "Only with `--params-namespace`: parameters in Trimtab's own namespace, where no tenant writes",
    _NO: "Not at all",
}
"""Answer of the compiler → the heading of the examples that have it."""
_LABEL = "labels: {add: {team: a}}"
_SPEC = {
    "description": "description: A sentence.",
    "enabled": "enabled: false",
    "priority": "priority: 10",
    "mode": "mode: warn",
    "rollout": "rollout: 25%",
    "guaranteed": "guaranteed: change",
    "optOut": "optOut: namespace",
}
_MATCH = {
    "namespaces": "namespaces: {include: [team-*]}",
    "podLabels": "podLabels: {app: web}",
    "podSelector": "podSelector: {matchLabels: {app: web}}",
    "owners": "owners: [Deployment]",
    "containers": "containers: {names: [app]}",
    "runtimeClasses": "runtimeClasses: [gvisor]",
    "priorityClasses": "priorityClasses: [low]",
    "requests": "requests: {cpu: {below: 1}}",
    "annotations": "annotations: {a: b}",
    "serviceAccounts": "serviceAccounts: [ci]",
    "vpa": "vpa: unmanaged",
    "hpa": "hpa: unaffected",
    "exclude": "exclude: [{podLabels: {app: db}}]",
}
_MATCH_VARIANTS = ("owners: [CronJob]", "containers: {roles: [sidecar]}", "containers: {images: [nginx*]}")
"""Values of fields that have another answer than their example, or that readers ask for."""
_RULE = {
    "from": "from: usage",
    "otherwise": "from: policy, otherwise: 50m",
    "min": "from: usage, min: 10m",
    "max": "from: usage, max: 2",
    "percent": "from: request, percent: 50%",
    "round": "from: usage, round: 10m",
    "when": "from: usage, when: always",
    "minPercent": "from: usage, when: always, minPercent: 50%",
    "maxPercent": "from: usage, when: always, maxPercent: 100%",
    "rule": "from: usage, rule: p99 +15%",
    "pods": "from: usage, pods: largest",
    "underVpa": "from: usage, underVpa: p95",
    "maxAge": "from: usage, maxAge: 7d",
    "minConfidence": "from: usage, minConfidence: 0.7",
    "running": "from: usage, running: resize",
}
_RULE_VARIANTS = (
    "from: limit, percent: 50%",
    "from: request, min: 10m",
    "from: policy, otherwise: 50m, when: always",
    "from: limit, percent: 50%, when: always",
)
_ACTIONS = {
    "runtimeClass": ("name: gvisor", "name: gvisor, override: true", "name: gvisor, required: true"),
    "overhead": ("stray: strip", "stray: deny", "contradicting: deny", "stray: strip, required: true"),
    "requests": (
        "ephemeral-storage: {otherwise: 1Gi}",
        "extended: {example.com/licence: 1}",
        "containers: [{names: [proxy], cpu: {from: policy, otherwise: 20m}}]",
        "cpu: {from: policy, otherwise: 50m}, required: true",
    ),
    "limits": (
        "cpu: remove",
        "cpu: request x 2",
        "memory: remove",
        "ephemeral-storage: request x 2",
        "memory: remove, unknownRuntime: keep",
        "cpu: remove, required: true",
    ),
    "podLevelRequests": ("cpu: {rule: p99}", "memory: {rule: p99}", "cpu: {rule: p99}, required: true"),
    "placement": (
        "require: [{label: pool, in: [batch]}]",
        "requireAny: [[{label: pool, in: [batch]}]]",
        "prefer: [{label: pool, in: [batch]}]",
        "nodeSelector: {pool: batch}",
        "tolerate: [{key: pool, value: batch, effect: NoSchedule}]",
        "nodeSelector: {pool: batch}, required: true",
    ),
    "safeToEvictVolumes": ("volumes: [tmp]", "volumes: [tmp], hostPaths: true", "volumes: [tmp], required: true"),
    "disruptionTerms": ("cost: 20", "windows: sat 02:00-06:00, override: true", "perDay: 2, required: true"),
    "priorityClass": ("name: low", "name: low, override: true", "name: low, required: true"),
    "topologySpread": (
        "constraints: [{topologyKey: topology.kubernetes.io/zone}]",
        "constraints: [{topologyKey: topology.kubernetes.io/zone}], by: [app]",
        "constraints: [{topologyKey: topology.kubernetes.io/zone}], required: true",
    ),
    "schedulerName": (
        "name: packing",
        "name: packing, lease: none",
        "name: packing, lease: none, override: true",
        "name: packing, lease: none, required: true",
    ),
    "terminationGracePeriod": ("maxSeconds: 600", "minSeconds: 30", "maxSeconds: 600, required: true"),
    "emptyDirs": ("sizeLimit: 1Gi", "sizeLimit: 1Gi, medium: [Memory]", "sizeLimit: 1Gi, required: true"),
    "labels": (
        "add: {team: a}",
        "fromNamespace: {team: team}",
        "fromPod: {team: {label: owner, among: [a, b]}}",
        "add: {team: a}, override: true",
        "add: {team: a}, required: true",
    ),
    "annotations": ("add: {a: b}", "add: {a: b}, override: true", "add: {a: b}, required: true"),
}


def page() -> str:
    """Return the page. Raises ValueError for a field without an example, or an example that is no valid policy."""
    rows = [*_rows_of_spec(), *_rows_of_match(), *_rows_of_rule(), *_rows_of_actions()]
    lines = [_HEAD]
    for answer, title in _TITLES.items():
        examples: dict[str, list[str]] = {}
        for text, (own, why) in rows:
            if own == answer:
                # The field that the problem begins with is in the example.
                examples.setdefault(re.sub(r"^spec[.][^ ]*: ", "", why), []).append(f"`{text}`")
        lines += [f"## {title}\n", *(f"- {', '.join(own)}{why and f': {why}'}" for why, own in examples.items()), ""]
    return "\n".join(lines)


def _rows_of_spec() -> Iterator[tuple[str, tuple[str, str]]]:
    _check_examples({to_camel(field.name) for field in fields(Spec)} - {"match", "actions"}, set(_SPEC))
    for text in _SPEC.values():
        yield text, _answer(f"{{{text}, actions: {{{_LABEL}}}}}")


def _rows_of_match() -> Iterator[tuple[str, tuple[str, str]]]:
    _check_examples({to_camel(field.name) for field in fields(Match)}, set(_MATCH))
    for text in (*_MATCH.values(), *_MATCH_VARIANTS):
        yield f"match: {{{text}}}", _answer(f"{{match: {{{text}}}, actions: {{{_LABEL}}}}}")


def _rows_of_rule() -> Iterator[tuple[str, tuple[str, str]]]:
    _check_examples({to_camel(field.name.strip("_")) for field in fields(ResourceRequestRule)}, set(_RULE))
    for text in (*_RULE.values(), *_RULE_VARIANTS):
        yield f"cpu: {{{text}}}", _answer(f"{{actions: {{requests: {{cpu: {{{text}}}}}}}}}")


def _rows_of_actions() -> Iterator[tuple[str, tuple[str, str]]]:
    _check_examples({action.word for action in ACTIONS}, set(_ACTIONS))
    _check_examples({to_camel(field.name) for field in fields(Actions)}, set(_ACTIONS))
    for word, texts in _ACTIONS.items():
        for text in texts:
            # A required action names its namespaces.
            match = "match: {namespaces: {include: [team-*]}}, " if "required: true" in text else ""
            yield f"{word}: {{{text}}}", _answer(f"{{{match}actions: {{{word}: {{{text}}}}}}}")


def _check_examples(declared: set[str], examples: set[str]) -> None:
    if declared != examples:
        raise ValueError(f"without an example here, or no field any more: {sorted(declared ^ examples)}")


def _answer(spec: str) -> tuple[str, str]:
    """Return whether the policy compiles, and why not."""
    policy = _load(spec)
    for answer, options in (
        (_YES, {}),
        (_USAGE, {"with_parameters": True}),
        (_OWN_NAMESPACE, {"with_parameters": True, "parameters_namespace": "trimtab-system"}),
    ):
        compiled = compile_mutating_policy(policy, (policy,), **options)  # type: ignore[arg-type]
        if not compiled.problem:
            return answer, compiled.note
    return _NO, compiled.problem


def _load(spec: str) -> PodPolicy:
    document = {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "PodPolicy",
        "metadata": {"name": "example"},
        "spec": yaml.safe_load(spec),
    }
    loaded = load_policies([(spec, yaml.safe_dump(document).encode())])
    if loaded.mistakes:
        raise ValueError("\n".join(map(str, loaded.mistakes)))
    return loaded.policies.all[0]
