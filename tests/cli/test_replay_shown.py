"""How a replayed week is shown: on one screen, and as a page."""

import re
from io import StringIO

from msgspec import structs
from rich.console import Console

from tests.cli.replay_reports import DAYS, DETAILS, week
from tests.reasons import has_facts
from trimtab.cli.page.before_after import MAX_DAYS, Change, draw_days
from trimtab.cli.replay.page import render_page
from trimtab.cli.replay.report import STATE_METRICS, ReplayedWorkload, ReplayReport
from trimtab.cli.replay.table import SCREEN_VIEW, VIEW
from trimtab.cli.reporting.draw import draw_report
from trimtab.cli.reporting.emit import render_report
from trimtab.cli.reports.replay_words import RECORDED

ONE_SCREEN = 32


def screen(report: ReplayReport, width: int = 100) -> list[str]:
    text = StringIO()
    draw_report(Console(file=text, width=width), report, SCREEN_VIEW)
    return text.getvalue().splitlines()


def test_a_week_fits_on_one_screen_and_begins_with_the_answer() -> None:
    lines = screen(week())
    assert max(len(lines), len(screen(week(), 80))) <= ONE_SCREEN
    assert has_facts(lines[0], DETAILS, "504.0 core hours", "7.5 %", "$25.20", "30 evictions", "30")


def test_each_day_is_there_as_it_was_and_as_it_would_have_been() -> None:
    rows = [line.split() for line in screen(week()) if line.strip().startswith("2026-11-") and "UTC" not in line]
    assert [row[0] for row in rows] == list(DAYS)
    assert rows[-1][1:6] == ["24.0", "960", "960", "816", "144.0"]


def test_the_names_are_those_of_the_workloads_that_are_disturbed() -> None:
    rows = [ReplayedWorkload(workload=text, evictions=2) for text in ("Deployment shop/web", "shop/lonely")]
    names = render_report("name", structs.replace(week(), workloads=rows), VIEW)
    assert names.split() == ["Deployment/web", "Pod/lonely"]


def test_a_saving_below_the_error_says_nothing() -> None:
    assert not any("says nothing" in line for line in screen(week()))
    assert any("says nothing" in line for line in screen(week(model_error=0.2)))


def test_the_numbers_of_a_row_add_up_where_the_replay_differs_from_what_was() -> None:
    days = [structs.replace(row, core_hours=1_000.0) if row.variant == RECORDED else row for row in week().days]
    report = structs.replace(week(), days=days)
    last = [line.split() for line in screen(report) if line.startswith(DAYS[-1]) and "UTC" not in line][-1]
    assert last[2:6] == ["1,000", "960", "816", "144.0"]


def test_the_page_compares_what_the_saving_compares() -> None:
    rows = {
        field: [
            structs.replace(row, cost=9_999.0) if row.variant == RECORDED else row for row in getattr(week(), field)
        ]
        for field in ("variants", "days")
    }
    page = render_page(structs.replace(week(), **rows))
    facts, picture = (
        page.partition('class="facts">')[2].partition("<p")[0],
        page.partition("<svg")[2].partition("</svg")[0],
    )
    assert "$336.00 → $310.80" in facts
    assert "$48.00" in picture
    assert "9,999" not in facts + picture


def test_the_page_says_how_far_repeats_differ_and_which_days_are_not_whole() -> None:
    days = [structs.replace(row, hours=1.5) if row.day == DAYS[0] else row for row in week().days]
    page = render_page(structs.replace(week(), repeats=5, saved_least=-12.5, saved_most=640.0, days=days))
    assert has_facts(page, "−12.5", "640.0", "5 replays")
    assert f"{DAYS[0]}, 1.5 h<" in page
    assert f"{DAYS[1]}<" in page


def test_a_note_about_the_recording_is_on_the_screen() -> None:
    assert any("a note" in line for line in screen(week()))


def test_where_trimtab_ran_already_the_difference_from_what_was_is_not_called_an_error() -> None:
    report = structs.replace(week(model_error=0.2), own_drains=3)
    assert not any("says nothing" in line for line in screen(report))


def test_the_page_has_the_answer_the_picture_and_all_tables() -> None:
    page = render_page(week())
    headline = page.partition("<h1>")[2].partition("</h1>")[0]
    assert has_facts(headline, DETAILS, "504.0 core hours", "$25.20", "30 evictions")
    assert page.count("<rect") == 2 * len(DAYS)
    assert page.index("<h1>") < page.index("<svg") < page.index("<table")
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert [title.split()[:2] for title in titles] == [
        ["Day", "by"],
        ["By", "day:"],
        ["By", "pool:"],
        ["By", "day"],
        ["What", "Trimtab"],
        ["What", "captures"],
    ]


def test_below_the_headline_the_page_says_of_which_cluster_it_is_and_how_it_is_made_again() -> None:
    page = render_page(week())
    origin = page.partition('origin">')[2].partition("</p>")[0]
    assert has_facts(origin, "0c7f4a1e", "2,016 captures", "0.1.0", "<code>trimtab replay --captures captures</code>")
    assert page.index("<h1>") < page.index(origin) < page.index("<svg")
    assert page.count("trimtab replay --captures captures") == 1
    assert "2026-11-16T00:00" in page


def test_what_kube_state_metrics_showed_is_not_called_captures() -> None:
    report = week(source=STATE_METRICS)
    page = render_page(report)
    assert "captur" not in "".join(screen(report)).replace(report.command, "")
    assert "capture" not in page.partition("<main>")[2].replace(report.command, "")
    assert page.rpartition("<h2>")[2].split()[1] == STATE_METRICS


def test_without_prices_the_days_are_in_core_hours() -> None:
    page = render_page(week(has_prices=False))
    assert "$" not in page.partition("<main>")[2]
    assert ">816</text>" in page


def test_a_name_is_text_on_the_page() -> None:
    assert "<img" not in render_page(week(workload="<img src=x>"))


def test_bars_are_as_long_as_their_numbers_and_the_last_days_are_drawn() -> None:
    days = [
        Change(name=f"day {number}", before=100.0, before_text="100", after=50.0, after_text="50")
        for number in range(MAX_DAYS + 5)
    ]
    picture = draw_days(days, "as it was", "with it", "core hours")
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)"', picture)]
    assert widths == [210.0, 105.0] * MAX_DAYS
    assert "day 4<" not in picture
    assert "day 5<" in picture
    assert draw_days([], "as it was", "with it", "core hours") == ""
