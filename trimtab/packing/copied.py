"""Does a pod select others by the labels the API server gives them when it binds?

`topology.kubernetes.io/zone` and `/region` are copied from the node onto the pod (1.35). We read pods without them,
for a successor gets its own; so who selects pods by them cannot be judged.
"""

from collections.abc import Iterable

from trimtab.cluster.api.meta import LabelSelector, UnsetType
from trimtab.cluster.pod import COPIED, Ask


def speaks_of_copied(ask: Ask) -> bool:
    """Of its conditions; wishes may be wrong without harm."""
    if not (ask.together or ask.apart or ask.spreads):
        return False
    found = [key for spread in ask.spreads for key in (*_keys(spread.label_selector), *spread.match_label_keys)]
    for term in (*ask.together, *ask.apart):
        found += (*_keys(term.label_selector), *term.match_label_keys, *term.mismatch_label_keys)
    return any(key in COPIED for key in found)


def _keys(selector: LabelSelector | UnsetType) -> Iterable[str]:
    if not isinstance(selector, UnsetType):
        yield from selector.match_labels
        yield from (expression.key for expression in selector.match_expressions)
