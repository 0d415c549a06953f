"""Runs the example cases of policies. A case is a few files in a folder with the name of its policy:

CASE.before.yaml   a manifest that creates pods of one kind
CASE.after.yaml    the pod as the API server stores it, or its refusal; `--accept` writes it
CASE.why.yaml      the expectation: `says`, `acts`, and the reason codes in `because` and `would`; `--accept` writes
                   it if it does not exist
CASE.world.yaml    the objects of the cluster; without the file there are none
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.pod_templates import PodTemplateLocation, read_templates
from trimtab.admission.preview import Preview, preview_admission
from trimtab.cli.output import format_yaml
from trimtab.cluster.api.meta import SelectorRequirement, change, value_or
from trimtab.cluster.api.pod import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, Pod
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.snapshot import load_snapshot
from trimtab.cluster.yaml_documents import read_documents
from trimtab.policy.changed_annotation import ANNOTATION
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.podpolicy import PodPolicy, Policies

BEFORE_SUFFIX = ".before.yaml"
EXAMPLES: Literal["examples.trimtab.dev/v1"] = "examples.trimtab.dev/v1"
NODE_OF_DAEMON = "node-1"
"""The node of the pod that a DaemonSet creates in a case."""
TO_EXPLAIN = "Write here what this case shows."
HEADER = (
    "# This pod is as the API server would store it. `trimtab policies test --accept` wrote this file; read it "
    "before you commit.\n"
)


class Expectation(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The expected outcome of a case."""

    says: str
    """A sentence about the case, for the reader of the test report."""
    acts: bool
    """Whether the stored pod differs from the pod without the policy."""
    api_version: Literal["examples.trimtab.dev/v1"] = EXAMPLES
    kind: Literal["Expectation"] = "Expectation"
    because: tuple[str, ...] = ()
    """The codes of all reasons of the webhook's decision."""
    would: tuple[str, ...] = ()
    """All fields that a policy in mode `warn` or `audit` would change."""
    beside: tuple[str, ...] = ()
    """The names of the other policies that are in force in this case."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case, with its files."""

    folder: Path
    name: str

    @property
    def policy_name(self) -> str:
        """The name of the policy that is tested."""
        return self.folder.name

    def file_path(self, part: str) -> Path:
        """Returns the path of one of the case's files: before, after, why or world."""
        return self.folder / f"{self.name}.{part}.yaml"

    def __str__(self) -> str:
        return f"{self.policy_name}/{self.name}"


def find_cases(paths: Iterable[Path]) -> list[Case]:
    """Returns all cases below these folders, ordered by path."""
    files = sorted({file for path in paths for file in path.rglob(f"*{BEFORE_SUFFIX}")})
    return [Case(file.parent, file.name.removesuffix(BEFORE_SUFFIX)) for file in files]


def find_problems(case: Case, policies: Mapping[str, PodPolicy], *, accept: bool = False) -> Iterator[str]:
    """Yields the differences from the case's expectation as text, or the mistake in an invalid file.

    With `accept`, the stored pod is written as the expected one, and an expectation is written if there is none.
    """
    is_explained = case.file_path("why").is_file()
    if not is_explained and not accept:
        yield f"the file {case.file_path('why').name} does not exist; `--accept` writes it"
        return
    try:
        expectation = (
            msgspec.convert(yaml.safe_load(case.file_path("why").read_text()), Expectation)
            if is_explained
            else Expectation(says=TO_EXPLAIN, acts=False)
        )
        case_policies = [policies[name] for name in (case.policy_name, *expectation.beside)]
        facts, template = _read_facts(case), _read_template(case)
    except KeyError as error:
        yield f"the case names the policy {error.args[0]}, which does not exist"
        return
    except (OSError, ValueError, yaml.YAMLError) as error:
        yield str(error)
        return
    pod_preview, preview_without_policy = (
        _preview_pod(template, case_policies, facts),
        _preview_pod(template, case_policies[1:], facts),
    )
    after = stored_pod(pod_preview)
    codes = reason_codes(pod_preview)
    would = {change.field for call in pod_preview.calls for change in call.decision.would}
    acts = _comparable_pod(after) != _comparable_pod(stored_pod(preview_without_policy))
    if not is_explained:
        expectation = Expectation(says=TO_EXPLAIN, acts=acts, because=tuple(sorted(codes)), would=tuple(sorted(would)))
        # The fields of an expectation that differ from their defaults, after apiVersion and kind. By apiVersion and
        # kind, `trimtab policies check` sees that the file is no policy.
        fields = {"because": list(expectation.because), "would": list(expectation.would)}
        case.file_path("why").write_text(
            format_yaml(
                {
                    "apiVersion": expectation.api_version,
                    "kind": expectation.kind,
                    "says": expectation.says,
                    "acts": expectation.acts,
                    **{name: values for name, values in fields.items() if values},
                }
            )
        )
    if accept:
        text = format_yaml(after, width=200)
        case.file_path("after").write_text(HEADER + text)
    elif not case.file_path("after").is_file():
        yield f"the file {case.file_path('after').name} does not exist; `--accept` writes it"
    else:
        yield from _find_differences(
            _comparable_pod(yaml.safe_load(case.file_path("after").read_text())), _comparable_pod(after), ""
        )
    yield from _compare_codes("because", expectation.because, codes)
    yield from _compare_codes("would", expectation.would, would)
    if acts is not expectation.acts:
        yield (
            f"the case says `acts: {str(expectation.acts).lower()}`, but the policy makes "
            f"{'no' if expectation.acts else 'a'} difference"
        )


def _read_facts(case: Case) -> ClusterFacts:
    path = case.file_path("world")
    reading = load_snapshot([(path.name, path.read_bytes())] if path.exists() else [])
    if reading.mistakes:
        raise ValueError("; ".join(map(str, reading.mistakes)))
    return from_snapshot(reading.snapshot)


def _read_template(case: Case) -> PodTemplateLocation:
    path = case.file_path("before")
    reading = read_documents(path.name, path.read_bytes())
    located = [template for document in reading.documents for template in read_templates(document)]
    mistakes: list[ConfigError] = [
        *reading.mistakes,
        *(template for template in located if isinstance(template, ConfigError)),
    ]
    if mistakes:
        raise ValueError("; ".join(map(str, mistakes)))
    [template] = (
        [template for template in located if isinstance(template, PodTemplateLocation)] if len(located) == 1 else [None]
    )
    if template is None:
        raise ValueError(f"{path.name}: expected one manifest that creates pods, got {len(located)}")
    return template


def _preview_pod(template: PodTemplateLocation, policies: Iterable[PodPolicy], facts: ClusterFacts) -> Preview:
    pod = _pin_to_node(template.pod) if template.kind == "DaemonSet" else template.pod
    context = AdmissionContext(policies=Policies.from_policies(*policies), facts=template.with_owners(facts))
    return preview_admission(pod, template.namespace, context)


def _pin_to_node(pod: Pod) -> Pod:
    """Returns the pod with the node affinity by which the DaemonSet controller binds each pod to one node
    (ReplaceDaemonSetPodNodeNameNodeAffinity, pkg/controller/daemon/util)."""
    field = SelectorRequirement(key="metadata.name", operator="In", values=(NODE_OF_DAEMON,))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    affinity = value_or(pod.spec.affinity, Affinity())
    node_affinity = change(value_or(affinity.node_affinity, NodeAffinity()), required=required)
    return change(pod, spec=change(pod.spec, affinity=change(affinity, node_affinity=node_affinity)))


def stored_pod(pod_preview: Preview) -> Any:
    """Returns the stored pod as JSON values, or the API server's refusal."""
    if isinstance(pod_preview.result, PodRejected):
        return {"apiVersion": EXAMPLES, "kind": "Refusal", "refused": str(pod_preview.result)}
    # The pod without what its containers show of their runtimes, which no API server stores.
    parts = (pod_preview.result.pod.spec.containers, pod_preview.result.pod.spec.init_containers)
    containers, init_containers = (tuple([change(one, runtime_signs=()) for one in part]) for part in parts)
    pod = change(
        pod_preview.result.pod,
        spec=change(pod_preview.result.pod.spec, containers=containers, init_containers=init_containers),
    )
    return {"apiVersion": "v1", "kind": "Pod", **msgspec.json.decode(msgspec.json.encode(pod))}


def reason_codes(pod_preview: Preview) -> set[str]:
    """Returns the reason codes of the webhook's first call, and of the changes of a second call; `no-policy` if no
    policy matched."""
    if not pod_preview.calls:
        return set()
    first = pod_preview.calls[0].decision
    codes = {change.reason.code.name for call in pod_preview.calls for change in call.decision.changes}
    codes |= {field_kept.reason.code.name for field_kept in first.fields_kept}
    codes |= {reason.code.name for reason in (first.skipped, first.denied) if reason is not None}
    return codes or (set() if first.matched else {"no-policy"})


def _compare_codes(word: str, expected: Iterable[str], actual: set[str]) -> Iterator[str]:
    missing, unexpected = sorted(set(expected) - actual), sorted(actual - set(expected))
    if missing:
        yield f"{word}: {', '.join(missing)} is expected, but missing"
    if unexpected:
        yield f"{word}: {', '.join(unexpected)} is not expected"


_RANDOM_FIELDS = ("name", "generateName", "namespace", "ownerReferences")


def _comparable_pod(pod: Any) -> Any:
    """Returns the pod without the fields that have random values, and without Trimtab's annotation of its changes."""
    metadata = {key: value for key, value in (pod.get("metadata") or {}).items() if key not in _RANDOM_FIELDS}
    for part in ("labels", "annotations"):
        remaining = {name: value for name, value in metadata.pop(part, {}).items() if name not in _RANDOM_KEYS}
        metadata |= {part: remaining} if remaining else {}
    return {**pod, "metadata": metadata}


_RANDOM_KEYS = (ANNOTATION, "pod-template-hash", "batch.kubernetes.io/job-name")


def _find_differences(expected: Any, actual: Any, field: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            yield from _find_differences(expected.get(key), actual.get(key), f"{field}.{key}".lstrip("."))
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, pair in enumerate(zip(expected, actual, strict=True)):
            yield from _find_differences(*pair, f"{field}[{index}]")
    elif expected != actual:
        yield f"{field}: expected {_format_value(expected)}, got {_format_value(actual)}"


def _format_value(value: Any) -> str:
    return "nothing" if value is None else msgspec.json.encode(value).decode()
