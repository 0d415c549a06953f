"""Finds the fields for which two policies want different values, among all actions."""

from trimtab.policy.actions.action import ValueDifference
from trimtab.policy.all_actions import ACTIONS, iterate_actions
from trimtab.policy.podpolicy import Actions


def find_differences(own: Actions, other: Actions) -> list[ValueDifference]:
    """Returns the fields that both policies decide, and for which they want different values."""
    own_values, other_values = wanted_values(own), wanted_values(other)
    differences = [
        ValueDifference(field, own_values[field], other_values[field])
        for field in own_values.keys() & other_values.keys()
        if own_values[field] != other_values[field]
    ]
    for action in ACTIONS:
        settings, other_settings = getattr(own, action.name), getattr(other, action.name)
        if settings is not None and other_settings is not None:
            differences += action.compare(settings, other_settings)
    return sorted(differences)


def wanted_values(actions: Actions) -> dict[str, str]:
    """Returns field → the value that the actions want, as text, for fields that only one policy can decide. Rules for
    single containers are left out."""
    return {
        field: value for action, settings in iterate_actions(actions) for field, value in action.list_values(settings)
    }
