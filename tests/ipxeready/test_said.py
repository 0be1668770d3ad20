"""Refusals: English where programs, files and logs have them, in the reader's language on a page."""

from __future__ import annotations

import copy
import gettext
import json
import pickle
import re
from collections.abc import Iterator

import pytest
from django import forms
from django.utils import translation

from ipxeready.errors import Conflict, Invalid, NodeRefused
from ipxeready.management.commands.translations import PO
from ipxeready.said import Said, joined, said
from ipxeready.storage.hostnames import check_hostname
from ipxeready.storage.mac import normalize_mac
from ipxeready.web.words import in_words, refuse

HAN = re.compile(r"[\u4e00-\u9fff]")


def templates() -> list[str]:
    """The sentences of the catalogue that take values."""
    with PO.with_suffix(".mo").open("rb") as file:
        found = gettext.GNUTranslations(file)._catalog
    return sorted(
        key
        for key in found
        if isinstance(key, str) and re.search(r"\{\w+\}", key) and "%(" not in key
    )


TEMPLATES = templates()


def of(template: str) -> Said:
    """The sentence with values like those of a room."""
    names = set(re.findall(r"\{(\w+)\}", template))
    return said(template, **{name: f"v.{name}" for name in names})


@pytest.fixture(autouse=True)
def _language() -> Iterator[None]:
    """A test client of another test leaves the language of its last request behind."""
    with translation.override("en"):
        yield


# --- the text itself ------------------------------------------------------------


def test_it_is_its_english_text() -> None:
    text = said("node {agent} has no such target", agent="node-1")
    assert text == "node node-1 has no such target"
    assert isinstance(text, str)
    assert json.loads(json.dumps({"detail": text})) == {"detail": str(text)}
    assert type(str(text)) is str
    assert type(text[:500]) is str


def test_it_knows_its_sentence_and_its_values() -> None:
    text = said("node {agent} has no such target", agent="node-1")
    assert text.template == "node {agent} has no such target"
    assert text.values == {"agent": "node-1"}


def test_braces_stand_for_themselves_where_there_is_no_value() -> None:
    assert said("must not contain ${: a {word}") == "must not contain ${: a {word}"


def test_it_survives_being_copied() -> None:
    text = said("it is {status}", status="creating")
    for copied in (copy.deepcopy(text), pickle.loads(pickle.dumps(text))):  # noqa: S301
        assert copied == text
        assert copied.template == text.template
        assert copied.values == text.values


def test_several_are_joined() -> None:
    text = joined("; ", said("is disabled"), "{as it is}")
    assert text == "is disabled; {as it is}"
    with translation.override("zh-hans"):
        assert in_words(text) == "已停用; {as it is}"
    assert joined("; ") == ""


# --- in words -------------------------------------------------------------------


def test_the_language_is_that_of_who_reads() -> None:
    error = Conflict(said("node {agent} has no such target", agent="node-1"))
    assert in_words(error) == "node node-1 has no such target"
    with translation.override("zh-hans"):
        assert in_words(error) == "节点 node-1 没有这个 target"
        assert error.message == "node node-1 has no such target"
        assert str(error) == "node node-1 has no such target"
        assert error.detail() == "node node-1 has no such target"


def test_a_sentence_in_a_sentence_is_translated_too() -> None:
    with pytest.raises(Invalid) as refused:
        normalize_mac("zz")
    assert refused.value.message == (
        "mac: 'zz' is not a MAC address. Write it as 00:0c:29:b9:8b:2d."
    )
    with translation.override("zh-hans"):
        assert in_words(refused.value) == (
            "MAC：'zz' 不是 MAC 地址。请写成 00:0c:29:b9:8b:2d。"
        )


def test_what_a_node_said_stays_as_it_said_it() -> None:
    error = NodeRefused(agent="node-1", status=409, error="the disk is on fire")
    assert error.message == "node node-1: the disk is on fire"
    with translation.override("zh-hans"):
        assert in_words(error) == "节点 node-1：the disk is on fire"


def test_what_we_say_of_a_node_is_translated() -> None:
    words = said("there is no job {job}.", job="'x'")
    error = NodeRefused(agent="node-1", status=404, error=words)
    assert error.detail() == {"agent": "node-1", "error": "there is no job 'x'."}
    with translation.override("zh-hans"):
        assert in_words(error) == "节点 node-1：没有作业 'x'。"


def test_a_long_answer_of_a_node_is_cut() -> None:
    error = NodeRefused(agent="node-1", status=409, error="x" * 1000)
    assert error.error == "x" * 200


def test_text_from_a_file_is_recognised() -> None:
    with translation.override("zh-hans"):
        assert in_words("cancelled: not tried") == "已取消：未尝试"
        assert in_words("node node-1 has no such target") == (
            "节点 node-1 没有这个 target"
        )
        assert in_words(
            "mac: 'zz' is not a MAC address. Write it as 00:0c:29:b9:8b:2d."
        ) == ("MAC：'zz' 不是 MAC 地址。请写成 00:0c:29:b9:8b:2d。")
        assert in_words("agent: node node-1 is disabled; enable it or name another node") == (
            "agent: 节点 node-1 已停用；请启用它或指定其他节点"
        )  # fmt: skip
        assert in_words("n1: is disabled; n2: is unreachable") == (
            "n1: 已停用; n2: 无法连接"
        )


def test_text_of_others_stays_as_it_is() -> None:
    with translation.override("zh-hans"):
        for text in ("", "-", "No space left on device", "{x}", "a: b; c", "x" * 9000):
            assert in_words(text) == text
        assert in_words(None) == "None"
        assert in_words(7) == "7"


def test_text_that_repeats_a_name_is_recognised_only_with_one_value_for_it() -> None:
    words = (
        "there is a node n1 already; change it with PUT /agents/{}, or take another id"
    )
    with translation.override("zh-hans"):
        assert HAN.search(in_words(words.format("n1")))
        assert in_words(words.format("n2")) == words.format("n2")


def test_much_text_is_recognised_quickly() -> None:
    text = "node " + "; ".join(f"n{number}: has no" for number in range(300))
    with translation.override("zh-hans"):
        in_words(text[:3999])


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_sentence_is_found_again_in_its_english_text(template: str) -> None:
    text = of(template)
    with translation.override("zh-hans"):
        exact = in_words(text)
        assert exact != text
        assert in_words(str(text)) == exact


LONG = [template for template in TEMPLATES if len(of(template)) > 200]


@pytest.mark.parametrize("template", LONG)
def test_a_long_sentence_is_found_again_when_its_end_was_cut_off(template: str) -> None:
    """Programs get 200 characters of a node's words, and a page may read those from the file of a job."""
    text = of(template)
    with translation.override("zh-hans"):
        cut = in_words(text[:200])
        words = re.split(r"v\.\w+", in_words(text))
    assert [part for part in words if part not in cut] == []
    assert HAN.search(cut)


def test_what_was_cut_off_is_marked() -> None:
    text = said(
        "no room for {what}: needed {needed}, free {free} of which {reserve} stay in reserve. "
        "Free some space or take another node.",
        what="x" * 120,
        needed="40 GiB",
        free="9 GiB",
        reserve="1 GiB",
    )
    with translation.override("zh-hans"):
        assert in_words(f"node n: {text[:200]}").endswith(
            "需要 40 GiB，可用 9 GiB，其中 1 GiB 须作保留。请腾出空间或换一个节点。"
        )
        text = text.replace("x" * 120, "x" * 150)
        assert in_words(text[:200]) == (
            f"没有空间存放 {'x' * 150}：需要 40 GiB，可用 9 GiB，其中 1… 须作保留。"
            "请腾出空间或换一个节点。"
        )
        nobodys = "the disk hums, and then it does not, and the fan is loud " * 5
        assert in_words(nobodys[:200]) == nobodys[:200]


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_sentence_has_chinese_in_it(template: str) -> None:
    with translation.override("zh-hans"):
        words = in_words(of(template))
    assert HAN.search(words) or not re.search(
        "[a-z]{4}", re.sub(r"\{\w+\}", "", template)
    )


# --- beside a field -------------------------------------------------------------


class _Form(forms.Form):
    hostname = forms.CharField()


def test_a_refusal_stands_beside_its_field() -> None:
    form = _Form({"hostname": "a.b"})
    with translation.override("zh-hans"), pytest.raises(Invalid) as refused:
        check_hostname("a.b")
    with translation.override("zh-hans"):
        refuse(form, refused.value)
        (words,) = form.errors["hostname"]
    assert words == (
        "主机名：'a.b' 含有点号：机器只会得到点号之前的部分。请给出不带域名的名称。"
    )


def test_a_refusal_of_another_field_stands_above_and_names_it() -> None:
    form = _Form({"hostname": "a"})
    with translation.override("zh-hans"):
        refuse(form, Invalid(said("must be true, false, 1 or 0"), field="live"))
        assert form.non_field_errors() == ["live: 必须是 true、false、1 或 0"]
