"""How `make docs` makes pages of this folder. The contents are those that docs/README.md links to, in its order."""

import importlib.metadata
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

project, author, release = "Trimtab", "the Trimtab authors", importlib.metadata.version("trimtab")
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "README"
exclude_patterns = ["**/__pycache__"]
highlight_language = "none"

# Links go to headings by the names that GitHub gives them, so that they work in both places.
myst_heading_anchors = 4
nitpicky = True

html_theme = "furo"
html_title = f"Trimtab {release}"
html_theme_options = {"top_of_page_buttons": []}
html_copy_source = False
html_show_sourcelink = False


def with_contents(app: Any, name: str, source: list[str]) -> None:
    """The table of contents, from the links under each heading of the first page."""
    if name == root_doc:
        source[0] += "".join(_contents(source[0]))


def from_outside(app: Any, name: str, source: list[str]) -> None:
    """Pages that lie elsewhere in the repository come along as the files they are."""
    folder, docs = Path(app.srcdir, name).parent, Path(app.srcdir).resolve()

    def link(found: re.Match[str]) -> str:
        outside = not (folder / found[1]).resolve().is_relative_to(docs)
        return f"](path:{found[1]})" if outside else found[0]

    source[0] = re.sub(r"\]\(((?:\.\./)+[^)#]+\.md)\)", link, source[0])


def _contents(text: str) -> list[str]:
    headings = [*re.finditer(r"^## (.+)$", text, re.MULTILINE), None]
    made = []
    for here, after in pairwise(headings):
        assert here is not None
        section = text[here.end() : after.start() if after else None]
        pages = dict.fromkeys(re.findall(r"\]\(([\w/-]+)\.md\)", section))
        made.append(f"\n```{{toctree}}\n:hidden:\n:caption: {here[1]}\n\n" + "\n".join(pages) + "\n```\n")
    return made


def leave_decisions_out(app: Any, env: Any) -> None:
    """The search shows no decision: it says how something came about, and not how it is done."""
    for name in env.found_docs:
        if name.startswith("decisions/"):
            env.metadata[name]["nosearch"] = True


def first_page(app: Any, failure: Exception | None) -> None:
    """Whoever opens the folder gets there."""
    if failure is None and app.builder.name == "html":
        to = f'<meta http-equiv="refresh" content="0; url={root_doc}.html">'
        Path(app.outdir, "index.html").write_text(f"<!doctype html><title>Trimtab</title>{to}\n", encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("source-read", with_contents)
    app.connect("source-read", from_outside)
    app.connect("env-updated", leave_decisions_out)
    app.connect("build-finished", first_page)
