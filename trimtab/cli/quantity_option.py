"""The option `--quantity`, which says what the series in usage files are if their names do not say it."""

import click

from trimtab.cluster.config_error import ConfigError
from trimtab.inputs.command_faults import UsageError
from trimtab.usage.metric_names import Quantity, StatedQuantities, parse_stated_quantities


def _parse_quantities(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> StatedQuantities:
    try:
        return parse_stated_quantities(texts)
    except ValueError as error:
        raise UsageError([ConfigError(file="--quantity", expected=str(error), got=repr(", ".join(texts)))]) from None


add_quantity_option = click.option(
    "--quantity",
    "stated",
    multiple=True,
    metavar="[FILE=]QUANTITY",
    callback=_parse_quantities,
    help=f"What the series in usage files are if no name of a metric and no column says it: {', '.join(Quantity)} (a "
    "counter). With FILE=, it holds for one file.",
)
