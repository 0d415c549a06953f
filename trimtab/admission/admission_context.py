"""What the decisions about all pods of one moment have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import DEFAULT_SETTINGS, AdmissionSettings
from trimtab.policy.podpolicy import Policies

if TYPE_CHECKING:
    from trimtab.admission.response_cache import ResponseCache


# A struct, because building a frozen dataclass costs more, and every review builds one.
class AdmissionContext(msgspec.Struct, frozen=True, kw_only=True):
    """The policies, what is known about the cluster, the settings of the installation, and the earlier responses."""

    policies: Policies
    facts: ClusterFacts
    settings: AdmissionSettings = DEFAULT_SETTINGS
    memory: ResponseCache | None = None
    """The cache of earlier responses, which makes an answer faster but not different, with the decisions about quotas
    that all siblings of a pod share. None: every pod is decided by itself."""
