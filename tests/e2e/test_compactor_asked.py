"""What people ask of a compactor and tell it, through the cluster."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import ask, compactor, nodes, noted, pool
from tests.reasons import has_facts


def test_status_history_pause_and_resume(cluster: Cluster, tmp_path: Path) -> None:
    name = f"ask-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=3, cpu="4", memory="16Gi")
    cluster.deployment("web", replicas=4, cpu="900m", spec={"nodeSelector": {"pool": name}})
    cluster.eventually(lambda: len(cluster.running("app=web")) == 4, within=60)
    assert ask(cluster, "pause", "--why", "not yet") == "paused\n"
    cluster.apply(pool(cluster, name))
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("planned"), within=30)
        answer = ask(cluster, "status", "-o", "json")
        [mine] = answer["pools"]
        assert "not yet" in answer["paused"]
        assert (mine["mode"], answer["leader"]) == ("act", one.told("ready")[0]["identity"])
        assert mine["next"]
        assert "not yet" in mine["waitsFor"]
        assert ask(cluster, "resume") == "resumed\n"
        cluster.eventually(lambda: any((noted(n) or {}).get("emptied") for n in nodes(cluster, name)), within=60)
        done = {record["what"] for record in ask(cluster, "history", "--pool", name, "-o", "json")["records"]}
        assert done >= {"planned", "started", "evicted", "emptied"}
        assert "emptied" in ask(cluster, "status")
        ask(cluster, "resume", "--pool", "nobody", expect=2)
        assert ask(cluster, "resume", "--pool", name) == f"Pool {name} was not closed\n"
        ask(cluster, "pause", "--pool", "nobody", expect=2)
        assert "mode: rehearse" in ask(cluster, "pause", "--pool", name)
        cluster.eventually(lambda: ask(cluster, "status", "-o", "json")["pools"][0]["mode"] == "rehearse", within=30)
        assert "nothing was changed" in ask(cluster, "pause", "--pool", name)
        assert has_facts(ask(cluster, "resume", "--pool", name), "mode: act", "ConfigMap")
        with urllib.request.urlopen(f"{one.told('ready')[0]['url']}/metrics", timeout=30) as page:
            assert f'trimtab_compactor_nodes{{pool="{name}",state="emptied"}}' in page.read().decode()
    assert "NodeDrained" in cluster.kubectl("get", "events", "-A")
