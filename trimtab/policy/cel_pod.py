"""Expressions of CEL on the pod of a request: its maps, its owner, its containers, and who writes it."""

from trimtab.cluster.kinds import CONTROLLER_KINDS, groups_of
from trimtab.cluster.node import OS_LABELS
from trimtab.cluster.operating_system import LINUX, WINDOWS
from trimtab.cluster.owner import HASH_LABELS
from trimtab.policy.cel import cel_list, cel_string, has_entry, join_all
from trimtab.policy.field_owners import APPLIED

LABELS, ANNOTATIONS = "object.metadata.labels", "object.metadata.annotations"
MANAGED = "object.metadata.managedFields"
NAMESPACE_LABELS = "namespaceObject.metadata.labels"


def is_of_kind(kind: str) -> str:
    """Returns a CEL expression that is true if the owner `o` is of this kind of Kubernetes itself."""
    tests = (
        f"o.apiVersion.startsWith('{group}/')" if group else "!o.apiVersion.contains('/')" for group in groups_of(kind)
    )
    return f"o.kind == '{kind}' && ({' || '.join(tests)})"


def controller_expression(test: str) -> str:
    """Returns a CEL expression that is true if the pod has a controller `o` for which the test is true."""
    references = "object.metadata.ownerReferences"
    return f"has({references}) && {references}.exists(o, has(o.controller) && o.controller && {test})"


IS_DAEMON = controller_expression(is_of_kind("DaemonSet"))
HAS_OWNER = controller_expression("true")
_IS_OF_MEANT_GROUP = join_all(f"o.kind != '{kind}' || ({is_of_kind(kind)})" for kind in CONTROLLER_KINDS)
"""A CEL expression that is false if the owner `o` has the name of a known kind but is of another group."""
OWNER_KEY = (
    f"{HAS_OWNER} ? object.metadata.ownerReferences.filter(o, has(o.controller) && o.controller).map(o, "
    + "".join(
        f"{is_of_kind('ReplicaSet')} && {has_entry(LABELS, label)} && {LABELS}[{cel_string(label)}] != '' && "
        f"o.name.endsWith('-' + {LABELS}[{cel_string(label)}]) ? "
        f"'{kind}.' + o.name.substring(0, o.name.size() - {LABELS}[{cel_string(label)}].size() - 1) : "
        for kind, label in HASH_LABELS.items()
    )
    + f"{_IS_OF_MEANT_GROUP} ? o.kind + '.' + o.name : '')[0] : ''"
)
"""A CEL expression for KIND.NAME of the topmost controller that can be read from the pod; empty for a pod without a
controller, and for one whose controller has the name of a built-in kind but is of another group."""

ALL_CONTAINERS = "(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))"

IS_APPLIED = (
    f"(({has_entry(ANNOTATIONS, APPLIED)} && !({HAS_OWNER})) || "
    f"(has({MANAGED}) && {MANAGED}.exists(m, has(m.operation) && m.operation == 'Apply')))"
)
"""A CEL expression that is true if the pod itself will be applied again, so that what its author wrote must not
change."""
HAS_NO_NODE = "!has(object.spec.nodeName) || object.spec.nodeName == ''"
"""A CEL expression that is true if the pod names no node."""

# Whether the pod runs on Windows, as `trimtab.cluster.operating_system` decides it. The API server's RuntimeClass
# plugin comes before the policies: what the class selects is in the pod itself.

_SPEC = "object.spec"
_SELECTOR = f"{_SPEC}.nodeSelector"
_REQUIRED = f"{_SPEC}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
REQUIRED_TERMS = f"{_REQUIRED}.nodeSelectorTerms"
"""The required terms of the pod's node affinity, if there are any."""
HAS_REQUIRED_TERMS = (
    f"(has({_SPEC}.affinity) && has({_SPEC}.affinity.nodeAffinity) && "
    f"has({_REQUIRED}) && has({REQUIRED_TERMS}) && {REQUIRED_TERMS}.size() > 0)"
)


def _has_options(owner: str) -> str:
    """Returns a CEL expression that is true if the security context of a pod or container has options for Windows."""
    options = f"{owner}.securityContext.windowsOptions"
    fields = " || ".join(
        f"(has({options}.{field}) && {options}.{field}{empty})"
        for field, empty in (("hostProcess", ""), ("gmsaCredentialSpecName", " != ''"), ("runAsUserName", " != ''"))
    )
    return f"(has({owner}.securityContext) && has({options}) && ({fields}))"


_IS_SELECTED = " || ".join(
    f"({has_entry(_SELECTOR, label)} && {_SELECTOR}['{label}'] == '{WINDOWS}')" for label in OS_LABELS
)
_NAMES_SYSTEM = " || ".join(has_entry(_SELECTOR, label) for label in OS_LABELS)
_IS_REQUIRED = (
    f"{HAS_REQUIRED_TERMS} && {REQUIRED_TERMS}.all(t, has(t.matchExpressions) && t.matchExpressions.exists(e, "
    f"e.key in {cel_list(OS_LABELS)} && has(e.values) && e.values.size() > 0 && "
    f"((e.operator == 'In' && e.values.all(v, v == '{WINDOWS}')) || "
    f"(e.operator == 'NotIn' && '{LINUX}' in e.values))))"
)
_HAS_OPTIONS = f"{_has_options(_SPEC)} || {ALL_CONTAINERS}.exists(d, {_has_options('d')})"
IS_WINDOWS = (
    f"(has({_SPEC}.os) ? {_SPEC}.os.name == '{WINDOWS}' : "
    f"(({_NAMES_SYSTEM}) ? ({_IS_SELECTED}) : (({_IS_REQUIRED}) || {_HAS_OPTIONS})))"
)
"""A CEL expression that is true if the pod runs on Windows."""
