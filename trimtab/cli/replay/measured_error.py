"""How far replays were from what they predict, as `make bench-replay` measured it.

The percentages are figures of docs/measured.json. When the bench records other ones, it writes them here.
"""

MEASURED_ERROR = (
    "in three simulated clusters of about thirty nodes, with a capture each minute, one replay was up to 33 % from the "
    "core hours that repeated runs of the same hours saved on average, of which single ones were up to 30 % from it, "
    "and up to 38 % from their evictions"
)
UNMEASURED_ERROR = "; this is of captures, and what kube-state-metrics does not show adds to it"
"""What follows for a replay from kube-state-metrics, whose error was not measured."""
