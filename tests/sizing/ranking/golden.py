"""The worked example: a profile, nine types of one region, and what each of them comes to."""

from trimtab.machines.machine_types import family_of
from trimtab.sizing.ranking.capacity import Candidate, NodeReservation
from trimtab.sizing.ranking.workload import DaemonShare, PoolWorkload

DAEMONS = DaemonShare(cores=0.35, gib=1.2, pods=8)
WORKLOAD = PoolWorkload(cores=500, gib=3000, pods=4500, volumes=900, zones=3, daemons=DAEMONS)
ETCD = PoolWorkload(cores=500, gib=3000, pods=3000, volumes=1800, zones=3, daemons=DAEMONS)
"""The same with two volumes where the first has one, on fewer pods."""
MEASURED = NodeReservation(gib=0.20, cores_per_pod=1 / 250, gib_per_pod=1 / 80, eviction_gib=0.0977, is_measured=True)
VISIBLE = {32: 30.916, 64: 61.9, 128: 123.9}
PRICES = {
    "E8s_v5": 0.608,
    "E16s_v5": 1.216,
    "E8s_v6": 0.638,
    "E16s_v6": 1.277,
    "E8ps_v6": 0.441,
    "E16ps_v6": 0.882,
    "D8s_v5": 0.46,
    "D16s_v5": 0.92,
    "D16s_v6": 0.966,
}
VOLUMES = {"8 v5": 16, "16 v5": 32, "8 v6": 24, "16 v6": 48}


def candidate_of(name: str) -> Candidate:
    cores = 16 if "16" in name else 8
    gib = cores * (8 if name.startswith("E") else 4)
    is_fast = name.endswith("s_v6") and "p" not in name
    return Candidate(
        name=name,
        family=family_of(name),
        architecture="arm64" if "ps" in name else "amd64",
        cores=cores,
        gib=gib,
        visible_gib=VISIBLE[gib],
        price=round(PRICES[name] * 1_000_000),
        reservation=MEASURED,
        max_pods=400,
        max_volumes=VOLUMES[f"{cores} {name[-2:]}"],
        performance=1.15 if is_fast else 1.0,
        memory_weight=8.45,
    )


TABLE = """
E16ps_v6 0.571/1.984  89.8 120.0 159.3 cpu    89.81  0.786 27.77 97.45 31.75 36
E8ps_v6  0.293/1.115  43.5 58.8  79.3  cpu    43.48  0.779 27.50 96.49 31.75 72
E16s_v6  0.569/2.245 103.7 119.7 159.3 cpu   103.71  0.833 20.33 77.21 38.31 30
E8s_v6   0.291/1.245  50.4 58.7  79.3  cpu    50.43  0.832 20.30 77.09 38.28 60
E8s_v5   0.293/1.115  43.5 58.8  52.7  cpu    43.48  0.769 19.70 69.12 43.78 72
E16s_v5  0.571/1.984  89.8 120.0 106.0 cpu    89.81  0.769 19.70 69.12 43.78 36
D16s_v5  0.383/1.398  90.9 58.5  106.0 memory 58.54  0.688 17.62 61.82 49.68 54
D8s_v5   0.201/0.827  44.0 28.1  52.7  memory 28.13  0.671 17.19 60.30 49.68 108
D16s_v6  0.333/1.398 105.3 58.5  159.3 memory 58.54  0.635 15.50 58.88 52.16 54
"""
"""Type, reserved cores/GiB, GiB by cpu, memory and volumes, the bottleneck, usable GiB, efficiency, the blog's key,
GiB per dollar, dollars an hour of all nodes, nodes; published figures, in their order."""
