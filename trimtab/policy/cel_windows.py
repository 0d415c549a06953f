"""Writes the CEL expression that decides whether a pod runs on Windows, as `trimtab.cluster.operating_system` does.

The API server's RuntimeClass plugin comes before the policies: what the class selects is in the pod itself.
"""

from trimtab.cluster.node import OS_LABELS
from trimtab.cluster.operating_system import LINUX, WINDOWS
from trimtab.policy.cel import cel_list, has_entry
from trimtab.policy.cel_pod import ALL_CONTAINERS

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
