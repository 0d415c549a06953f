"""The options of `trimtab simulate --churn`. What runs the churn is imported only if it is wanted."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from trimtab.inputs.option import file_option, option


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnFlags:
    """The options of a churn."""

    is_wanted: Annotated[
        bool,
        option(
            "--churn",
            help="Instead of a snapshot, simulate hours of a cluster in which something changes all the time: with a "
            "stand-in for the cluster autoscaler alone, and with Trimtab in addition.",
        ),
    ] = False
    seeds: Annotated[
        tuple[int, ...],
        option("--churn-seed", metavar="NUMBER", minimum=0, help="What happens in the churn. Repeat it for several."),
    ] = (1,)
    hours: Annotated[
        float,
        option("--churn-hours", metavar="HOURS", minimum=1, maximum=10_000, help="How long the churn lasts."),
    ] = 10.0
    trace: Annotated[
        Path | None,
        file_option(
            "--churn-trace",
            help="A pod list of the openb trace, for the sizes and lifetimes of pods. Default: generated ones.",
        ),
    ] = None
