"""Recommends for VerticalPodAutoscalers (VPAs) that name Trimtab as their recommender: from usage to the VPA's
status."""
