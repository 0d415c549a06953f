"""Is each pod stored as its case says? A case is a few files beside each other, in a folder named after its policy:

CASE.before.yaml   a manifest that makes pods of one kind
CASE.after.yaml    the pod as the API server stores it, or its refusal; `--accept` writes it
CASE.why.yaml      what the case claims: `says`, `acts`, and the reason codes in `because` and `would`
CASE.world.yaml    what is in the cluster; absent: nothing
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.pod_templates import PodTemplateLocation, templates
from trimtab.admission.preview import Preview, preview
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.snapshot import load as load_snapshot
from trimtab.cluster.yaml_documents import read
from trimtab.policy.changed_annotation import ANNOTATION
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.podpolicy import PodPolicy, Policies

BEFORE = ".before.yaml"
EXAMPLES: Literal["examples.trimtab.dev/v1"] = "examples.trimtab.dev/v1"
HEADER = "# As the API server stores it. Written by trimtab policies test --accept; read before you commit.\n"


class Expectation(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What a case claims."""

    says: str
    """A sentence for people."""
    acts: bool
    """Does the policy make a difference?"""
    api_version: Literal["examples.trimtab.dev/v1"] = EXAMPLES
    kind: Literal["Expectation"] = "Expectation"
    because: tuple[str, ...] = ()
    """Every reason code of the decision."""
    would: tuple[str, ...] = ()
    """Every field that a policy in mode `warn` or `audit` would change."""
    beside: tuple[str, ...] = ()
    """Other policies that are in force, too."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case on file."""

    folder: Path
    name: str

    @property
    def policy(self) -> str:
        return self.folder.name

    def path(self, part: str) -> Path:
        return self.folder / f"{self.name}.{part}.yaml"

    def __str__(self) -> str:
        return f"{self.policy}/{self.name}"


def cases(paths: Iterable[Path]) -> list[Case]:
    """All below these folders, in order of their paths."""
    found = sorted({file for path in paths for file in path.rglob(f"*{BEFORE}")})
    return [Case(file.parent, file.name.removesuffix(BEFORE)) for file in found]


def problems(case: Case, known: Mapping[str, PodPolicy], *, accept: bool = False) -> Iterator[str]:
    """What is not as the case says, in words; a Mistake's own words where a file makes no sense.

    accept: the pod as it is stored now is written down as what is expected.
    """
    try:
        claims = msgspec.convert(yaml.safe_load(case.path("why").read_text()), Expectation)
        wanted = [known[name] for name in (case.policy, *claims.beside)]
        facts, made = _world(case), _template(case)
    except KeyError as error:
        yield f"there is no policy {error.args[0]}"
        return
    except (OSError, ValueError, yaml.YAMLError) as error:
        yield str(error)
        return
    found, without = _shown(made, wanted, facts), _shown(made, wanted[1:], facts)
    after = stored(found)
    if accept:
        text = yaml.safe_dump(after, sort_keys=False, width=200, allow_unicode=True)
        case.path("after").write_text(HEADER + text)
    elif not case.path("after").is_file():
        yield f"{case.path('after').name} is not there; `--accept` writes it"
    else:
        yield from _differences(_compared(yaml.safe_load(case.path("after").read_text())), _compared(after), "")
    yield from _claimed("because", claims.because, because(found))
    yield from _claimed("would", claims.would, {c.field for call in found.calls for c in call.decision.would})
    if (_compared(after) != _compared(stored(without))) is not claims.acts:
        yield f"acts: {str(claims.acts).lower()}, but the policy makes {'no' if claims.acts else 'a'} difference"


def _world(case: Case) -> ClusterFacts:
    path = case.path("world")
    reading = load_snapshot([(path.name, path.read_bytes())] if path.exists() else [])
    if reading.mistakes:
        raise ValueError("; ".join(map(str, reading.mistakes)))
    return from_snapshot(reading.snapshot)


def _template(case: Case) -> PodTemplateLocation:
    path = case.path("before")
    reading = read(path.name, path.read_bytes())
    made = [one for document in reading.documents for one in templates(document)]
    wrong: list[ConfigError] = [*reading.mistakes, *(one for one in made if isinstance(one, ConfigError))]
    if wrong:
        raise ValueError("; ".join(map(str, wrong)))
    [one] = [one for one in made if isinstance(one, PodTemplateLocation)] if len(made) == 1 else [None]
    if one is None:
        raise ValueError(f"{path.name}: expected a manifest that makes one kind of pods, got {len(made)}")
    return one


def _shown(made: PodTemplateLocation, policies: Iterable[PodPolicy], facts: ClusterFacts) -> Preview:
    return preview(made.pod, Policies.of(*policies), made.facts(facts), made.namespace)


def stored(found: Preview) -> Any:
    """The stored pod as plain values, or the API server's refusal."""
    if isinstance(found.result, PodRejected):
        return {"apiVersion": EXAMPLES, "kind": "Refusal", "refused": str(found.result)}
    return {"apiVersion": "v1", "kind": "Pod", **msgspec.json.decode(msgspec.json.encode(found.result.pod))}


def because(found: Preview) -> set[str]:
    """Codes of the first call, and of what a second one changed; `no-policy` where none matched."""
    if not found.calls:
        return set()
    first = found.calls[0].decision
    codes = {c.reason.code.name for call in found.calls for c in call.decision.changes}
    codes |= {left.reason.code.name for left in first.left}
    codes |= {reason.code.name for reason in (first.skipped, first.denied) if reason is not None}
    return codes or (set() if first.matched else {"no-policy"})


def _claimed(word: str, claimed: Iterable[str], found: set[str]) -> Iterator[str]:
    missing, more = sorted(set(claimed) - found), sorted(found - set(claimed))
    if missing:
        yield f"{word}: {', '.join(missing)} is not said"
    if more:
        yield f"{word}: {', '.join(more)} is said, too"


_DRAWN = ("name", "generateName", "namespace", "ownerReferences")


def _compared(pod: Any) -> Any:
    """Without what a controller draws for each pod, and our own annotation, which names what it did."""
    metadata = {key: value for key, value in (pod.get("metadata") or {}).items() if key not in _DRAWN}
    for part in ("labels", "annotations"):
        kept = {name: value for name, value in metadata.pop(part, {}).items() if name not in _DRAWN_KEYS}
        metadata |= {part: kept} if kept else {}
    return {**pod, "metadata": metadata}


_DRAWN_KEYS = (ANNOTATION, "pod-template-hash", "batch.kubernetes.io/job-name")


def _differences(expected: Any, actual: Any, field: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            yield from _differences(expected.get(key), actual.get(key), f"{field}.{key}".lstrip("."))
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, pair in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(*pair, f"{field}[{index}]")
    elif expected != actual:
        yield f"{field}: expected {_text(expected)}, got {_text(actual)}"


def _text(value: Any) -> str:
    return "nothing" if value is None else msgspec.json.encode(value).decode()
