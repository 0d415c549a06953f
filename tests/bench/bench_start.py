"""What does a first answer cost: the CPU of whole processes of `trimtab`, start included?

    make bench-start

`plan`, `admit`, `lint` and `recommend` answer about a cluster of a dozen nodes; `plan` also about the synthetic cluster
of 1 000 nodes with 30 pods each (`synthetic_cluster`). Each figure is the least of several processes. `python_s` is the
same for an interpreter that does nothing, and `decode_s` for one that only decodes the large cluster's JSON into dicts
and lists.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.results import choose_size, report_result
from tests.bench.synthetic_cluster import encode_list, generate_cluster
from tests.golden.snapshots import NOW, load_snapshot

CLUSTER = ("--cluster", "cluster.json")
USAGE = ("--usage", "usage.csv", "--now", NOW)
VERBS = {
    "plan": ("plan", *CLUSTER, "--now", NOW),
    "admit": ("admit", "-f", "manifests.yaml", "--policies", "policies.yaml", *CLUSTER),
    "lint": ("lint", *CLUSTER),
    "recommend": ("recommend", *CLUSTER, *USAGE),
}
MAX_SMALL_SECONDS, MAX_LARGE_SECONDS = 0.5, 1.1


def measure_cpu(line: Sequence[str], folder: str) -> float:
    """Returns the CPU seconds of the cheapest of several processes."""
    return min(run_once(line, folder) for _ in range(choose_size(7, 3)))


def run_once(line: Sequence[str], folder: str) -> float:
    """Returns the CPU seconds of one process. Raises CalledProcessError if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "HOME": folder}
    subprocess.run(line, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    python, trimtab = [sys.executable, "-c"], [sys.executable, "-m", "trimtab"]
    with tempfile.TemporaryDirectory() as folder:
        load_snapshot("pools").write(Path(folder))
        seconds = {name: measure_cpu([*trimtab, *arguments], folder) for name, arguments in VERBS.items()}
        Path(folder, "large.json").write_bytes(encode_list(generate_cluster(1000)))
        seconds["plan_1000"] = measure_cpu([*trimtab, "plan", "--cluster", "large.json"], folder)
        seconds["python"] = measure_cpu([*python, "pass"], folder)
        seconds["decode"] = measure_cpu([*python, "import json; json.load(open('large.json'))"], folder)
    report_result(
        "start",
        " ".join(f"{name}_s={spent:.2f}" for name, spent in seconds.items()),
        broken={
            f"a first answer takes at most {MAX_SMALL_SECONDS} s of CPU": max(seconds[name] for name in VERBS)
            > MAX_SMALL_SECONDS,
            f"a plan for 1 000 nodes takes at most {MAX_LARGE_SECONDS} s of CPU": seconds["plan_1000"]
            > MAX_LARGE_SECONDS,
        },
    )


if __name__ == "__main__":
    main()
