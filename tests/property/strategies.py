"""Pods, policies and clusters by the thousand, as real ones look. Names are few, so that things meet."""

import os

from hypothesis import HealthCheck, settings

from tests.property.drawn_parts import sometimes
from tests.property.drawn_pods import manifests, opted_out, pods, read
from tests.property.drawn_policies import documents, load, policies
from tests.property.drawn_worlds import worlds

_ANY_PACE = [HealthCheck.too_slow]
"""A busy machine is no counterexample."""
settings.register_profile("usual", max_examples=30, deadline=None, suppress_health_check=_ANY_PACE)
settings.register_profile("thorough", max_examples=3000, deadline=None, suppress_health_check=_ANY_PACE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

__all__ = ["documents", "load", "manifests", "opted_out", "pods", "policies", "read", "sometimes", "worlds"]
