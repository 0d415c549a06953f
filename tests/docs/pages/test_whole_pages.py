"""The short pages leave out no name: each command and option, each field of a policy and each setting has its line."""

import re

import click

from docs.pages import commands, policy_language, reasons, settings
from docs.pages.reason_codes import product_codes
from tests.docs.test_links import ROOT
from trimtab.cli.command_tree import iterate_contexts
from trimtab.policy.schema import spec_schema


def split_sections(page: str) -> dict[str, str]:
    """Returns the text under each heading of the page, by the heading without its backticks."""
    parts = re.split(r"^#+ (.*)$", page, flags=re.MULTILINE)
    return {title.strip("`"): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_each_option_is_named_in_the_section_of_each_command_that_has_it() -> None:
    words = commands.BUNDLES.items()
    sections = {
        title: " ".join([text, *(name for word, names in words for name in names if word in text)])
        for title, text in split_sections(commands.page()).items()
    }
    missing = [
        (context.command_path, option.opts)
        for context in iterate_contexts()
        if context.parent is not None
        for option in context.command.params
        if isinstance(option, click.Option) and not option.hidden
        if max(option.opts, key=len) not in sections[context.command_path]
    ]
    assert missing == []


def test_an_option_of_many_commands_is_described_once() -> None:
    assert commands.page().count("--kubeconfig FILE") == 1


def iterate_paths(path: str, schema: policy_language.Schema) -> list[str]:
    mark, inner = policy_language.inner_of(schema)
    fields = inner.get("properties", {})
    return [path, *(one for name, field in fields.items() for one in iterate_paths(f"{path}{mark}.{name}", field))]


def test_each_field_of_a_policy_is_described_under_its_heading() -> None:
    """An object whose fields are those of another one refers to it."""
    sections = split_sections(policy_language.page())
    headings = {re.sub(r"[^a-z0-9-]", "", title.lower()): title for title in sections}
    missing = []
    for path in iterate_paths("spec", spec_schema())[1:]:
        heading = headings[policy_language.find_heading(path)]
        is_described = path == heading or f"- `{path.rpartition('.')[2]}` (" in sections[heading]
        is_required = re.fullmatch(r"spec[.]actions[.]\w+[.]required", path) is not None
        if not (is_described or is_required or "It has the fields of [`" in sections[heading]):
            missing.append(path)
    assert missing == []


def test_each_setting_is_under_the_heading_that_explain_names() -> None:
    sections = split_sections(settings.page())
    texts = {title.lower().replace(" ", "-"): text for title, text in sections.items()}
    missing = [one for one in settings.list_settings() if f"`{one.variable}" not in texts[settings.find_heading(one)]]
    assert missing == []


def test_each_reason_has_its_heading() -> None:
    sections = split_sections(reasons.page())
    assert [code.name for code in product_codes() if not sections[code.name].strip()] == []


def test_the_reference_stays_short() -> None:
    """A new name is one line of a page; its details are in `trimtab explain`."""
    texts = [page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md")]
    assert len(texts) > 20
    assert sum(len(text.split()) for text in texts) < 46_000
