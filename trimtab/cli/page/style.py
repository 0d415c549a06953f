"""The style sheet of every page."""

from importlib import resources

from markupsafe import Markup


def page_style() -> Markup:
    """Returns the style sheet of every page: light and dark, on paper, on a phone."""
    text = resources.files("trimtab.cli.page").joinpath("style.css").read_text("utf-8")
    return Markup(text)  # noqa: S704  a file of this package
