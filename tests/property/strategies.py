"""Pods, policies and clusters by the thousand, as real ones look. Names are few, so that things meet."""

from tests.property.drawn_parts import sometimes
from tests.property.drawn_pods import manifests, opted_out, pods, read
from tests.property.drawn_policies import documents, load, policies
from tests.property.drawn_worlds import worlds

__all__ = ["documents", "load", "manifests", "opted_out", "pods", "policies", "read", "sometimes", "worlds"]
