"""The codes of findings about the settings of one action."""

from trimtab.cluster.reason import Code

ODD_AMOUNT = Code(
    "unusual-amount",
    "An amount is far from what containers request, so its unit is probably wrong or missing.",
    "Write memory as 128Mi or 2Gi, and cpu as 500m or 2.",
)
ODD_BOUND = Code(
    "ineffective-bound",
    "The field `otherwise` of a rule has no effect, because it is below `min`.",
    "Raise `otherwise` to at least `min`, or lower `min`.",
)
WORD_UNREAD = Code(
    "field-without-effect",
    "A field of the policy has no effect together with the other fields.",
    "Remove the field, or set the one that uses it.",
)
REPLACES_NOTHING = Code(
    "otherwise-replaces-nothing",
    "The rule's `otherwise` is only for containers without a request. The rule computes the request from usage. With "
    "`when: always`, only the usage replaces a request that a container already has.",
    "Write `from: policy` for a fixed number. If the request should follow the usage, do nothing.",
)
EVERY_CONTAINER = Code(
    "resource-for-every-container",
    "Every container gets the extended resource, so a pod takes it several times.",
    "Name the containers in `match.containers`, or under `requests.containers`. The latter has `names`, `roles` and "
    "`images`.",
)
NO_SUCH_NODE = Code(
    "no-node-can-match",
    "No node can have all the labels that the policy requires.",
    "Remove a requirement, or list several values of a label in one `in`.",
)
WEIGHT_UNREAD = Code(
    "weight-without-effect",
    "A weight has an effect only under `prefer`.",
    "Remove it, or move the entry from `require` to `prefer`.",
)
