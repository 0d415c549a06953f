"""The codes of findings about the settings of one action."""

from trimtab.cluster.reason import Code

ODD_AMOUNT = Code(
    "unusual-amount",
    "An amount is far from what any container requests, so its unit is probably missing or wrong.",
    "Write memory with Mi or Gi, and cpu in cores or with m: 128Mi, 500m, 2.",
)
ODD_BOUND = Code(
    "ineffective-bound",
    "One of two amounts in a rule has no effect because of the other amount.",
    "Raise `otherwise` to at least `min`, or lower `min`.",
)
WORD_UNREAD = Code(
    "field-without-effect",
    "A field of the policy has no effect in combination with the other fields.",
    "Remove the field, or set the field that uses it.",
)
REPLACES_NOTHING = Code(
    "otherwise-replaces-nothing",
    "The rule computes the request from usage, so its `otherwise` is given only to containers without a request. With "
    "`when: always`, only the usage replaces a request that a container already has.",
    "For a fixed number, write `from: policy`. If the request should follow the usage, do nothing.",
)
EVERY_CONTAINER = Code(
    "resource-for-every-container",
    "Every container of the pods gets the extended resource, so a pod with three containers takes three times the "
    "amount.",
    "Name the containers, either in `match.containers`, or in `names`, `roles` or `images` under "
    "`requests.containers`.",
)
NO_SUCH_NODE = Code(
    "no-node-can-match",
    "No node can have all the labels that the policy requires of a node.",
    "Remove one of the requirements. To allow several values of one label, list them in one `in`.",
)
WEIGHT_UNREAD = Code(
    "weight-without-effect",
    "A weight has an effect only in an entry of `prefer`.",
    "Remove the weight, or move the entry from `require` to `prefer`.",
)
