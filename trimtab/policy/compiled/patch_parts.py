"""The parts of a compiled patch, and the compiled actions on labels, annotations and single fields of the pod.

Each part has a CEL expression that says whether it changes the pod, and one for the operations. Both depend only on the
object, so a second evaluation changes nothing. A path is patched only if it is known to exist, because the API server
applies the patch even with `failurePolicy: Ignore`, and an invalid patch would refuse the pod.

Values are scalars, lists of strings, and maps of these. A list of `Object{}` values ends the request with a panic
(kube-apiserver 1.36.3, cel-go 0.26), so it is never written.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.policy.actions.empty_dirs import EmptyDirs
from trimtab.policy.actions.labels import Annotations, Labels, is_controller_label
from trimtab.policy.actions.placement_fields import NodeLabel
from trimtab.policy.actions.safe_to_evict_volumes import LOCAL_VOLUMES, SAFE_TO_EVICT, SafeToEvictVolumes
from trimtab.policy.actions.scheduler_name import SchedulerChoice
from trimtab.policy.actions.termination_grace_period import TerminationGracePeriod
from trimtab.policy.actions.topology_spread import TopologySpread
from trimtab.policy.cel import cel_list, cel_regex, cel_string, has_entry, join_all
from trimtab.policy.compiled.match_conditions import HAS_OWNER, IS_DAEMON, NAMESPACE_LABELS
from trimtab.policy.field_owners import APPLIED

LABELS, ANNOTATIONS = "object.metadata.labels", "object.metadata.annotations"
MANAGED = "object.metadata.managedFields"

IS_APPLIED = (
    f"(({has_entry(ANNOTATIONS, APPLIED)} && !({HAS_OWNER})) || "
    f"(has({MANAGED}) && {MANAGED}.exists(m, has(m.operation) && m.operation == 'Apply')))"
)
"""A CEL expression that is true if the pod itself will be applied again, so that what its author wrote must not
change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPart:
    """One change of the pod."""

    name: str
    """The field as messages name it, such as `labels[team]`."""
    test: str
    """A CEL expression on the object that is true if the change is to be made."""
    operations: str
    """A CEL expression for a list of JSON patch operations. It is only evaluated if `test` is true."""
    note: str
    """A CEL expression for the new value as text. It is only evaluated if `test` is true."""
    reads_late: bool = False
    """Whether the test reads the namespace's labels, parameters or variables, which match conditions cannot read."""


def operation(op: str, path: str, value: str | None = None) -> str:
    """Returns a CEL expression for one JSON patch operation. `path` is a CEL expression for a string, and `value` one
    for any value."""
    given = "" if value is None else f", value: {value}"
    return f"JSONPatch{{op: {cel_string(op)}, path: {path}{given}}}"


def pointer(*steps: str) -> str:
    """Returns a CEL string literal with the JSON pointer of these steps."""
    return cel_string("".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps))


def map_literal(value: Mapping[str, Any]) -> str:
    """Returns a CEL map literal. The values may be scalars, lists of strings, and maps of these."""
    # CEL wants the values of one literal to have one type; `dyn` hides theirs.
    return "{" + ", ".join(f"{cel_string(key)}: dyn({_literal(item)})" for key, item in value.items()) + "}"


def _literal(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return cel_string(value)
        case Mapping():
            return map_literal(value)
        case _:
            return cel_list(value)


def ensure_map(path: str, *steps: str) -> str:
    """Returns a CEL expression for a list with the operation that creates the map at this path; the list is empty if
    the map exists."""
    return f"(has({path}) ? [] : [{operation('add', pointer(*steps), '{}')}])"


def entry_part(
    part: str, key: str, value: str, *, override: bool, source: str = "true", late: bool = False
) -> PatchPart:
    """Returns the change that adds one label or annotation.

    `value` is a CEL expression for the text to set; `source` is a CEL expression that is true if there is such a text.
    """
    path = LABELS if part == "labels" else ANNOTATIONS
    present = has_entry(path, key)
    replaceable = f"{path}[{cel_string(key)}] != {value} && !{IS_APPLIED}" if override else "false"
    tests = [source, f"!({present}) || ({present} && {replaceable})"]
    if part == "labels" and is_controller_label(key):
        tests.append(f"!({HAS_OWNER})")
    operations = f"[{operation('add', pointer('metadata', part, key), value)}]"
    name = f"{part}[{key}]"
    return PatchPart(
        name=name,
        test=join_all(tests),
        operations=operations,
        note=f"{cel_string(name + '=')} + {value}",
        reads_late=late,
    )


def label_parts(settings: Labels) -> Iterator[PatchPart]:
    """Yields the changes of the labels action."""
    for key, text in sorted((settings.add or {}).items()):
        yield entry_part("labels", key, cel_string(text), override=settings.override)
    for key, label in sorted((settings.from_namespace or {}).items()):
        value = f"{NAMESPACE_LABELS}[{cel_string(label)}]"
        source = f"{has_entry(NAMESPACE_LABELS, label)} && {value} != ''"
        yield entry_part("labels", key, value, override=settings.override, source=source, late=True)
    for key, chosen in sorted((settings.from_pod or {}).items()):
        value = f"{LABELS}[{cel_string(chosen.label)}]"
        source = f"{has_entry(LABELS, chosen.label)} && {value} in {cel_list(chosen.among)}"
        yield entry_part("labels", key, value, override=settings.override, source=source)


def annotation_parts(settings: Annotations) -> Iterator[PatchPart]:
    """Yields the changes of the annotations action."""
    for key, text in sorted(settings.add.items()):
        yield entry_part("annotations", key, cel_string(text), override=settings.override)


def scheduler_parts(settings: SchedulerChoice) -> Iterator[PatchPart]:
    """Yields the change that sets the scheduler's name."""
    path, name = "object.spec.schedulerName", cel_string(settings.name)
    node = "(!has(object.spec.nodeName) || object.spec.nodeName == '')"
    is_free = f"(!has({path}) || {path} in ['', 'default-scheduler'])"
    may = f"({is_free} || (has({path}) && {path} != {name} && !{IS_APPLIED}))" if settings.override else is_free
    yield PatchPart(
        name="schedulerName",
        test=join_all([may, node, f"!has({path}) || {path} != {name}"]),
        operations=f"[{operation('add', pointer('spec', 'schedulerName'), name)}]",
        note=cel_string(f"schedulerName={settings.name}"),
    )


def grace_period_parts(settings: TerminationGracePeriod) -> Iterator[PatchPart]:
    """Yields the changes that bring the termination grace period within its bounds."""
    path = "object.spec.terminationGracePeriodSeconds"
    seconds = f"(has({path}) ? {path} : 30)"
    for sign, bound in (("<", settings.min_seconds), (">", settings.max_seconds)):
        if bound is not None:
            yield PatchPart(
                name="terminationGracePeriodSeconds",
                test=join_all([f"{seconds} {sign} {bound}", f"{seconds} == 30 || !{IS_APPLIED}"]),
                operations=f"[{operation('add', pointer('spec', 'terminationGracePeriodSeconds'), str(bound))}]",
                note=cel_string(f"terminationGracePeriodSeconds={bound}"),
            )


def empty_dir_parts(settings: EmptyDirs) -> Iterator[PatchPart]:
    """Yields the change that gives emptyDir volumes their size limit."""
    media = [medium if medium == "Memory" else "" for medium in settings.medium]
    medium = "(has(v.emptyDir.medium) ? v.emptyDir.medium : '')"
    # Another medium, such as huge pages, is neither memory nor the node's disk.
    is_meant = f"{medium} in {cel_list(media)}" if media else "true"
    is_unlimited = f"has(v.emptyDir) && !has(v.emptyDir.sizeLimit) && {is_meant}"
    add = operation("add", "'/spec/volumes/' + string(i) + '/emptyDir/sizeLimit'", cel_string(settings.size_limit))
    yield PatchPart(
        name="emptyDirs",
        test=f"has(object.spec.volumes) && object.spec.volumes.exists(v, {is_unlimited})",
        operations=f"object.spec.volumes.transformList(i, v, {is_unlimited}, {add})",
        note=cel_string(f"emptyDir.sizeLimit={settings.size_limit}"),
    )


def local_volume_parts(settings: SafeToEvictVolumes) -> Iterator[PatchPart]:
    """Yields the change that names scratch volumes to the cluster autoscaler."""
    key = cel_string(LOCAL_VOLUMES)
    never = f"{has_entry(ANNOTATIONS, SAFE_TO_EVICT)} && {ANNOTATIONS}[{cel_string(SAFE_TO_EVICT)}] == 'false'"
    has_list = has_entry(ANNOTATIONS, LOCAL_VOLUMES)
    listed = f"({has_list} ? {ANNOTATIONS}[{key}].split(',').filter(p, p != '') : [])"
    is_scratch = "(has(v.emptyDir) && (!has(v.emptyDir.medium) || v.emptyDir.medium != 'Memory'))"
    if settings.host_paths:
        is_scratch = f"({is_scratch} || has(v.hostPath))"
    is_meant = f"{is_scratch} && v.name.matches({cel_regex(settings.volumes)})"
    added = f"object.spec.volumes.filter(v, {is_meant} && !(v.name in {listed})).map(v, string(v.name)).sort()"
    text = f"({listed} + {added}).join(',')"
    yield PatchPart(
        name=f"annotations[{LOCAL_VOLUMES}]",
        test=join_all(
            [
                f"!({never})",
                "has(object.spec.volumes)",
                f"object.spec.volumes.exists(v, {is_meant} && !(v.name in {listed}))",
                f"!({has_list}) || !{IS_APPLIED}",
            ]
        ),
        operations=f"[{operation('add', pointer('metadata', 'annotations', LOCAL_VOLUMES), text)}]",
        note=f"{cel_string(f'annotations[{LOCAL_VOLUMES}]=')} + {text}",
    )


def topology_spread_parts(settings: TopologySpread) -> Iterator[PatchPart]:
    """Yields the change that adds the missing topology spread constraints."""
    path, hash_label = "object.spec.topologySpreadConstraints", "pod-template-hash"
    node = "(!has(object.spec.nodeName) || object.spec.nodeName == '')"
    placed = [] if settings.required else [node, f"!({IS_DAEMON})"]
    keys = f"{cel_list(settings.by)}.filter(k, has({LABELS}) && k in {LABELS})"
    for spread in settings.constraints:
        present = f"has({path}) && {path}.exists(c, c.topologyKey == {cel_string(spread.topology_key)})"
        constraint: dict[str, Any] = {
            "maxSkew": spread.max_skew,
            "topologyKey": spread.topology_key,
            "whenUnsatisfiable": spread.when_unsatisfiable,
        }
        if spread.min_domains is not None:
            constraint["minDomains"] = spread.min_domains
        selector = f"'labelSelector': dyn({{'matchLabels': {{{keys}[0]: {LABELS}[{keys}[0]]}}}})"
        fixed = map_literal(constraint)[:-1] + f", {selector}"
        hashed = f"{fixed}, 'matchLabelKeys': dyn([{cel_string(hash_label)}])}}"
        value = f"({has_entry(LABELS, hash_label)} ? {hashed} : {fixed}}})"
        yield PatchPart(
            name=f"topologySpreadConstraints[{spread.topology_key}]",
            test=join_all([*placed, f"{keys}.size() > 0", f"!({present})"]),
            operations=f"[{operation('add', pointer('spec', 'topologySpreadConstraints', '-'), value)}]",
            note=cel_string(f"topologySpreadConstraints[{spread.topology_key}]"),
        )


def prepare_parents(parts: Sequence[PatchPart]) -> str:
    """Returns CEL text for the operations that create, before all parts, the maps and lists to which several parts add
    entries."""
    # An empty map that is added a second time would remove what the first part has put into it.
    created = [ensure_map(ANNOTATIONS, "metadata", "annotations")]
    if any(part.name.startswith("labels[") for part in parts):
        created.append(ensure_map(LABELS, "metadata", "labels"))
    path = "object.spec.topologySpreadConstraints"
    tests = [f"({part.test})" for part in parts if part.name.startswith("topologySpreadConstraints[")]
    if tests:
        create = operation("add", pointer("spec", "topologySpreadConstraints"), "[]")
        created.append(f"(!has({path}) && ({' || '.join(tests)}) ? [{create}] : [])")
    return " + ".join(created)


def resolved_source(label: NodeLabel) -> str:
    """Returns a CEL expression that is true if the source of this node label's value exists, which is a label of the
    pod or of its namespace."""
    if label.in_namespace_label is not None:
        path = NAMESPACE_LABELS
        return f"{has_entry(path, label.in_namespace_label)} && {path}[{cel_string(label.in_namespace_label)}] != ''"
    if label.in_pod_label is not None:
        value = f"{LABELS}[{cel_string(label.in_pod_label)}]"
        return f"{has_entry(LABELS, label.in_pod_label)} && {value} in {cel_list(label.among)}"
    return "true"
