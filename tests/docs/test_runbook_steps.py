"""Steps of runbooks that a person types on a node, run on a tree of files like the node's."""

import os
import re
import subprocess
from pathlib import Path

RUNBOOKS = Path(__file__).parents[2] / "docs" / "how-to" / "runbooks.md"
UID = "0f3c1d2e-aaaa-4bbb-8ccc-123456789abc"
KUBECTL = (
    f"#!/bin/sh\ncase \"$*\" in 'get pod POD -n NAMESPACE -o jsonpath={{.metadata.uid}}') printf %s {UID};; esac\n"
)
FILES = {"cpu.max": "25000 100000", "cpu.weight": "10", "memory.max": "301989888", "memory.current": "250000000"}


def test_the_cgroup_of_a_pod_with_its_sandbox_is_read(tmp_path: Path) -> None:
    """Where the kubelet makes it with cgroup v2 and the systemd driver: dashes of the uid are underscores there."""
    slice_ = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
    container = tmp_path / slice_ / "cri-containerd-1.scope"
    container.mkdir(parents=True)
    (container / "memory.current").write_text("90000000\n")
    for name, text in FILES.items():
        (container.parent / name).write_text(text + "\n")
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    section = RUNBOOKS.read_text().partition("## TrimtabOverheadWrong")[2].partition("\n## ")[0]
    [block] = [match for match in re.findall(r"(?:^    .*\n)+", section, re.MULTILINE) if "cgroup" in match]
    script = re.sub("^    ", "", block, flags=re.MULTILINE).replace("/sys/fs/cgroup", str(tmp_path))
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=True, env={"PATH": path})
    assert done.stdout.split("\n") == [*FILES.values(), "90000000", ""]
