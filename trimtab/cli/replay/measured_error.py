"""How far replays were from what they predict, as `make bench-replay` measured it.

The percentages are figures of docs/measured.json. When the bench records other ones, it writes them here.
"""

MEASURED_ERROR = (
    "in three simulated clusters of about a hundred and seventy nodes, with the preset keen and a capture each minute, "
    "replays were on average up to 11 % from the core hours that runs of the same hours saved, and up to 11 % from "
    "their evictions; on a real control plane with a fast clock, up to 8.3 % and 17.5 %, and with a capture every five "
    "minutes up to 8.8 % and 18.0 %; of about thirty nodes, one replay was up to 53 % from the core hours that the "
    "runs saved on average, of which single runs were up to 33 % from it, and up to 42 % from their evictions"
)
SCRAPED_ERROR = (
    "; from kube-state-metrics in place of captures, on that control plane, up to 20.2 % and 9.2 %, and it "
    "predicted too little saving each time: which pods a budget protects is not known there, so the autoscaler alone "
    "removes more nodes in the replay than it did"
)
"""What follows for a replay from kube-state-metrics."""
