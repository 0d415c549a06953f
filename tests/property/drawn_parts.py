"""What draws have in common: quantities that meet, and fields that are mostly not there."""

from hypothesis import strategies as st

CPU = ["10m", "50m", "0.1", "250m", "500m", "1", "1.5", "2", "4"]
MEMORY = ["16Mi", "64Mi", "100M", "0.5Gi", "512Mi", "1e9", "1Gi", "2Gi", "4G"]
BY = {"cpu": CPU, "memory": MEMORY}


def sometimes(strategy, otherwise=None):
    """Mostly nothing."""
    return st.one_of(st.just(otherwise), st.just(otherwise), strategy)


def dropping(values: dict) -> dict:
    """Without what was not drawn."""
    return {key: value for key, value in values.items() if value is not None}


CPUS, MEMORIES = st.sampled_from(CPU), st.sampled_from(MEMORY)
KEYS = st.sampled_from(["pool", "zone", "kubernetes.io/hostname"])
VALUES = st.sampled_from(["batch", "web", "a", "b"])
"""Labels."""
