"""What a replay found, as text, for the verbs that show it."""

from trimtab.cluster.format_count import format_count

RECORDED = "as it was"
"""The variant of a replay that is what was recorded."""
ALONE = "the autoscaler alone, in the replay"
"""With what the variants are compared, in the key of a picture."""


def format_money(amount: float) -> str:
    """Returns the dollars as text; what is shown as zero has no sign."""
    text = f"${abs(amount):,.2f}"
    return f"−{text}" if amount < 0 and text != "$0.00" else text


def format_signed(amount: float) -> str:
    """Returns the hours as text; what is shown as zero has no sign."""
    text = f"{abs(amount):,.1f}"
    return f"−{text}" if amount < 0 and text != "0.0" else text


def describe_saving(core_hours: float | None, dollars: float | None, without: float = 0.0) -> str:
    """Returns what is saved, or costs more, as in "12.5 core hours (5.0 %, $1.20) saved"; "–" if it is not known. Where
    machines differ in their price for a core, one can be saved and the other not. `without`: the core hours without
    Trimtab; 0: the share is left out."""
    if core_hours is None:
        return "–"
    hours, money = round(core_hours, 1), round(dollars or 0.0, 2)
    share = f"{abs(hours) / without:.1%}".replace("%", " %") if without else ""
    amounts = [(hours, f"{abs(hours):,.1f} core hours", share), (money, format_money(abs(money)), "")]
    signed = [(amount > 0, text, detail) for amount, text, detail in amounts if amount]
    if len(signed) == 2 and signed[0][0] == signed[1][0]:
        details = ", ".join(filter(None, (share, signed[1][1])))
        signed = [(signed[0][0], signed[0][1], details)]
    phrases = [f"{_join_details(text, detail)} {_RESULTS[is_saved]}" for is_saved, text, detail in signed]
    return ", ".join(phrases) or "nothing saved"


_RESULTS = {True: "saved", False: "more than without Trimtab"}


def _join_details(text: str, detail: str) -> str:
    return f"{text} ({detail})" if detail else text


def describe_evictions(evictions: int, alone: int | None) -> str:
    """Returns how many pods would have been evicted by Trimtab and the autoscaler. `alone`: how many by the autoscaler
    without Trimtab; None if that is not known."""
    count = format_count(evictions, "eviction")
    return count if alone is None else f"{count} instead of {alone:,}"


def describe_doubt(
    saved_core_hours: float | None, core_hours: float, model_error: float | None, own_drains: int
) -> str:
    """Returns that the saving may be nothing but an error of the model; empty if it is larger than that error.
    `core_hours`: those that were recorded. If Trimtab drained nodes meanwhile, the difference from what was is not an
    error."""
    if saved_core_hours is None or model_error is None or own_drains:
        return ""
    is_small = abs(saved_core_hours) < abs(model_error) * core_hours
    return "The saving is smaller than this difference, so it says nothing." if is_small else ""


def describe_model_error(model_error: float, measured_error: str) -> str:
    """Returns how far the replay of the autoscaler alone is from what was, and how far replays were from runs."""
    size = f"{abs(model_error):.1%}".replace("%", " %")
    difference = f"{size} {'more' if model_error > 0 else 'fewer'}" if size != "0.0 %" else "no more"
    return f"The replay of the autoscaler alone has {difference} core hours than there were; {measured_error}."
