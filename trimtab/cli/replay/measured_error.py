"""How far replays were from what they predict, as `make bench-replay` measured it.

The percentages are figures of docs/measured.json. When the bench records other ones, it writes them here.
"""

MEASURED_ERROR = (
    "in three simulated clusters of ten hours, with a capture each minute, one replay saved up to 33 % more core hours "
    "than four runs of the same hours on average, of which single ones were up to 30 % from their average, and had up "
    "to 38 % more evictions"
)
UNMEASURED_ERROR = "; this is of captures, and what kube-state-metrics does not show adds to it"
"""What follows for a replay from kube-state-metrics, whose error was not measured."""
