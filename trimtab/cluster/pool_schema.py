"""What may stand in a pool's settings, as a JSON Schema: for who checks them before we are asked (a chart's values).

It refuses what `pool_file` refuses, but for time zones, whose names it does not know. Nothing here names a section
twice: a test holds its keys against the reader's own.
"""

from typing import Any

from trimtab.cluster.pool import PRESETS, Goal, Spare
from trimtab.cluster.pool_values import LEAST_PRICE, MOST
from trimtab.cluster.windows import DAYS

Schema = dict[str, Any]

_FLAG: Schema = {"type": "boolean"}
_PERCENT: Schema = {"anyOf": [
    {"type": "integer", "minimum": 0, "maximum": 100}, {"type": "string", "pattern": "^0*([0-9]{1,2}|100)%$"},
]}  # fmt: skip
_SPAN: Schema = {"anyOf": [
    {"const": 0}, {"type": "string", "pattern": r"^(0|\s*([0-9]+([.][0-9]+)?(h|ms|us|µs|ns|m|s))+\s*)$"},
]}  # fmt: skip
_NAMES: Schema = {"type": "array", "items": {"type": "string", "minLength": 1}}
_TIME: Schema = {"type": "string", "pattern": "^0*([0-9]|1[0-9]|2[0-3]):[0-5][0-9]$"}
_PRICE: Schema = {"type": "number", "minimum": LEAST_PRICE, "exclusiveMaximum": 100_000}
_LABELS: Schema = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}


def _whole(least: int = 0) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": MOST}


def _section(**properties: Schema) -> Schema:
    """Nothing said is nothing there."""
    return {"type": ["object", "null"], "additionalProperties": False, "properties": properties}


_WINDOW: Schema = {
    "type": "object", "additionalProperties": False, "required": ["from", "to"],
    "properties": {
        "days": {"type": "array", "minItems": 1, "items": {"enum": [*DAYS]}},
        "from": _TIME, "to": _TIME, "timeZone": {"type": "string"},
    },
}  # fmt: skip
_UNDER: Schema = {
    **_section(**dict.fromkeys(("cpu", "memory", "pods", "ephemeral-storage"), _PERCENT), count=_whole(1),
               **{"for": _SPAN}),
    "patternProperties": {"/": _PERCENT},
}  # fmt: skip


def schema() -> Schema:
    """Of the settings of one pool."""
    return {
        **_section(
            preset={"enum": [*PRESETS]},
            nodes={"anyOf": [{"const": "all"}, _section(labels=_LABELS)]},
            goal={"enum": [one.value for one in Goal]},
            mode={"enum": ["rehearse", "act"]},
            dryRun=_FLAG,
            enabled=_FLAG,
            underUsed=_UNDER,
            age=_section(node=_SPAN, receiver=_SPAN, pod=_SPAN),
            quiet=_SPAN,
            keep=_section(
                nodes=_whole(), nodesPerZone=_whole(), spare={"enum": [one.value for one in Spare]},
                headroom=_section(percent=_PERCENT, nodes=_whole(), largestPod=_FLAG),
            ),
            pace=_section(drains=_whole(1), evictionsPerHour=_whole(1), leastGain=_whole()),
            prices={"type": "object", "additionalProperties": _PRICE},
            windows={"type": "array", "items": _WINDOW},
            optOut=_section(nodes=_NAMES, pods=_NAMES),
            protect=_section(singleReplicas=_FLAG, jobs=_FLAG, notReady=_FLAG),
        ),
        "type": "object",
        "not": {"required": ["mode", "dryRun"]},
    }  # fmt: skip
