"""The API version and the kind of a policy. A module of its own, because what only asks whether an object is a policy
needs none of the policy language."""

API_VERSION = "trimtab.dev/v1alpha1"
KIND = "PodPolicy"
