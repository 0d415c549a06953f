"""The option `--quantity`, which says what the series in usage files are if their names do not say it."""

from __future__ import annotations

from trimtab.cluster.config_error import ConfigError
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.option import option
from trimtab.usage.metric_names import Quantity, StatedQuantities, parse_stated_quantities


def _parse_quantities(texts: tuple[str, ...]) -> StatedQuantities:
    try:
        return parse_stated_quantities(texts)
    except ValueError as error:
        raise UsageError([ConfigError(file="--quantity", expected=str(error), got=repr(", ".join(texts)))]) from None


QUANTITY = option(
    "--quantity",
    metavar="[FILE=]QUANTITY",
    repeats=True,
    convert=_parse_quantities,
    help=f"What the series in usage files are if no name of a metric and no column says it: {', '.join(Quantity)} (a "
    "counter). With FILE=, it holds for one file.",
)
