"""The findings of `trimtab doctor` about VPAs that name Trimtab as their recommender."""

from trimtab.cluster.reason import Code

VPA_WITHOUT_RECOMMENDER = Code(
    "vpa-without-recommender",
    "VPAs name Trimtab as their recommender, but its recommender is not installed, or does not write recommendations "
    "of VPAs. What they have stays, and new ones get nothing.",
    "`trimtab install --apply --vpa-recommender` with the other options of the installation; with Helm, set "
    "`recommender.vpa: true`. Or remove `spec.recommenders` from these VPAs.",
)
VPA_SEVERAL_RECOMMENDERS = Code(
    "vpa-names-several-recommenders",
    "A VPA names Trimtab and another recommender. Trimtab writes nothing for it.",
    "Name one recommender in `spec.recommenders`.",
)
VPA_RECOMMENDATION_MISSING = Code(
    "vpa-recommendation-missing",
    "A VPA names Trimtab and has no recommendation. Its condition `RecommendationProvided` says why: in most cases "
    "there is less than a day of usage.",
    "`kubectl describe vpa` shows the conditions.",
)
VPA_RECOMMENDATION_OLD = Code(
    "vpa-recommendation-old",
    "The usage from which Trimtab computed a VPA's recommendation is more than two hours old. A recommendation of a "
    "VPA has no end, so the VPA's own processes go on to apply it.",
    "Check whether the recommender leads and reads usage: its log, and the checks `leases` and `usage-source`. To go "
    "back to the VPA's own recommender, remove `spec.recommenders` (docs/how-to/keep-your-vpa.md).",
)
