"""How far replays were from what they predict, as `make bench-replay` measured it.

The percentages are figures of docs/measured.json. When the bench records other ones, it writes them here.
"""

MEASURED_ERROR = (
    "in three simulated clusters of about a hundred and seventy nodes, with the preset keen and a capture each minute, "
    "replays were on average up to 11 % from the core hours that runs of the same hours saved, and up to 11 % from "
    "their evictions; on a real control plane with a fast clock, also with a capture every five minutes, up to 13.9 % "
    "and 21.7 %; of about thirty nodes, one replay was up to 53 % from the core hours that the runs saved on average, "
    "of which single runs were up to 33 % from it, and up to 42 % from their evictions"
)
SCRAPED_ERROR = "; from kube-state-metrics in place of captures, on that control plane, up to 17.6 % and 26.0 %"
"""What follows for a replay from kube-state-metrics."""
