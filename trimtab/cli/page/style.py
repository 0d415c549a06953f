"""Reads the style sheet of every HTML page."""

from importlib import resources

from markupsafe import Markup


def page_style() -> Markup:
    """Returns the style sheet of every page, with rules for light and dark screens, paper and phones."""
    text = resources.files("trimtab.cli.page").joinpath("style.css").read_text("utf-8")
    return Markup(text)  # noqa: S704  a file of this package
