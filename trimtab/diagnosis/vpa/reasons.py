"""The findings of `trimtab doctor` about VPAs that name Trimtab as their recommender."""

from trimtab.cluster.reason import Code

VPA_WITHOUT_RECOMMENDER = Code(
    "vpa-without-recommender",
    "VPAs name Trimtab as their recommender, but nothing writes for them. Its recommender is not installed, or does "
    "not write recommendations of VPAs. What they have stays, and new ones get nothing.",
    "Run `trimtab install --apply --vpa-recommender`; with Helm, set `recommender.vpa: true`. Add the other options "
    "of the installation. Or remove `spec.recommenders` from these VPAs.",
)
VPA_SEVERAL_RECOMMENDERS = Code(
    "vpa-names-several-recommenders",
    "A VPA names Trimtab and another recommender, so Trimtab writes nothing for it.",
    "Name one recommender in `spec.recommenders`.",
)
VPA_RECOMMENDATION_MISSING = Code(
    "vpa-recommendation-missing",
    "A VPA names Trimtab and has no recommendation. Its condition `RecommendationProvided` says why: in most cases "
    "there is less than a day of usage.",
    "See its conditions with `kubectl describe vpa`.",
)
VPA_RECOMMENDATION_OLD = Code(
    "vpa-recommendation-old",
    "A VPA's recommendation is from usage that is more than two hours old. A recommendation of a VPA has no end, so "
    "the VPA's own processes go on to apply it.",
    "Check the recommender's log, and the checks `leases` and `usage-source`. To go back to the VPA's own "
    "recommender, remove `spec.recommenders` (docs/how-to/keep-your-vpa.md).",
)
