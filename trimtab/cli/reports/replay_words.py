"""What a replay found, as text, for the verbs that show it."""

RECORDED = "as it was"
"""The variant of a replay that is what was recorded."""


def format_money(amount: float) -> str:
    """Returns the dollars as text."""
    return f"−${-amount:,.2f}" if amount < 0 else f"${amount:,.2f}"


def format_signed(amount: float) -> str:
    """Returns the hours as text."""
    return f"{amount:,.1f}".replace("-", "−")


def describe_saving(core_hours: float | None, dollars: float | None) -> str:
    """Returns what is saved, or costs more, as in "12.5 core hours ($1.20) saved"; "–" if it is not known."""
    if core_hours is None:
        return "–"
    money = f" ({format_money(abs(dollars))})" if dollars is not None else ""
    return f"{abs(core_hours):,.1f} core hours{money} {'saved' if core_hours >= 0 else 'more'}"


def describe_model_error(model_error: float, measured_error: str) -> str:
    """Returns how far the replay of the autoscaler alone is from what was, and how far replays were from runs."""
    difference = f"{model_error:+.1%}".replace("-", "−")
    return f"The replay of the autoscaler alone has {difference} core hours against what was; {measured_error}."
