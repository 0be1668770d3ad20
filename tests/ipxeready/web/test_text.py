"""Text of others on a page: seen whole, acting on nothing."""

from __future__ import annotations

import pytest
from django.template import engines
from django.utils.html import format_html

from ipxeready.web.text import LONGEST, shown, visible


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("worker-01", "worker-01"),
        ("母盘 24.04.img", "母盘 24.04.img"),
        ("naïve – “quoted”", "naïve – “quoted”"),
        ("a\u202etxt.exe", "a\\u202etxt.exe"),
        ("a\u200bb\ufeffc\u00add", "a\\u200bb\\ufeffc\\u00add"),
        ("a\nb\tc\rd\0\x1b[31m\x9b", "a\\nb\\tc\\rd\\u0000\\u001b[31m\\u009b"),
        ("\u2028\u2029\u3164\u2800", "\\u2028\\u2029\\u3164\\u2800"),
        ("\U000e0041\ud800", "\\U000e0041\\ud800"),
        (None, ""),
        (0, "0"),
    ],
)
def test_what_nobody_would_see_is_written_out(text: object, seen: str) -> None:
    assert visible(text) == seen


def test_markup_is_text() -> None:
    assert shown("<b onclick='x'>\"&") == "&lt;b onclick=&#x27;x&#x27;&gt;&quot;&amp;"


def test_html_of_ours_stays_what_it_is() -> None:
    assert shown(format_html("<b>{}</b>", "<")) == "<b>&lt;</b>"


def test_letters_from_right_to_left_turn_nothing_beside_them() -> None:
    assert shown("שלום 1") == "<bdi>שלום 1</bdi>"


def test_a_long_text_is_cut_and_its_whole_is_a_title() -> None:
    page = shown('"' + "x" * 500)
    assert "…</bdi>" in page
    assert 'title="&quot;xxx' in page
    assert page.count("x") == 500 + LONGEST - 2


def test_a_text_of_megabytes_does_not_flood_the_page() -> None:
    assert len(shown("\u202e" * 1_000_000)) < 10_000


def test_every_template_has_the_filters() -> None:
    source = '<i title="{{ a|plain }}">{{ a|shown:3 }}</i>{{ b|size }}{{ c|size }}'
    page = engines["django"].from_string(source)
    html = page.render({"a": "<\u202e>", "b": 3 << 20, "c": None})
    assert html.startswith('<i title="&lt;\\u202e&gt;"><bdi class="cut" title=')
    assert html.endswith("3 MiB")
