"""The Chinese catalogue: complete, faithful and compiled as it stands."""

from __future__ import annotations

import gettext
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation

from ipxeready.actors import Actor
from ipxeready.conf import REPOSITORY
from ipxeready.management.commands import translations
from ipxeready.storage.paths import Layout
from ipxeready.users import services

MO = translations.PO.with_suffix(".mo")
#: A text, or one with a plural and the number of its form.
Text = str | tuple[str, int]
#: What a text with a plural counts.
NUMBERS = ("%(number)s", "%(count)s", "%(seconds)s")
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w*\}|%[sd]")

needs_gettext = pytest.mark.skipif(
    not shutil.which("msgfmt"), reason="gettext is missing: `make test-deps` brings it"
)


def compiled(po: Path, folder: Path) -> dict[Text, str]:
    mo = folder / "django.mo"
    translations.compile_catalogue(po, mo)
    return catalogue(mo.read_bytes())


def catalogue(content: bytes) -> dict[Text, str]:
    found = gettext.GNUTranslations(io.BytesIO(content))._catalog
    return {key: text for key, text in found.items() if key}


@needs_gettext
def test_the_catalogue_has_every_text_of_the_sources_and_no_other(
    tmp_path: Path,
) -> None:
    merged = translations.merge(translations.PO, translations.extract(tmp_path))
    assert translations.PO.read_text(encoding="utf-8") == merged, "run `make i18n`"


@needs_gettext
def test_a_text_that_is_new_in_a_source_is_noticed(tmp_path: Path) -> None:
    pot = translations.extract(tmp_path)
    with pot.open("a", encoding="utf-8") as file:
        file.write('\nmsgid "a text that nobody wrote"\nmsgstr ""\n')
    merged = translations.merge(translations.PO, pot)
    assert "a text that nobody wrote" in merged


@needs_gettext
@pytest.mark.parametrize("kind", ["--untranslated", "--only-fuzzy"])
def test_nothing_is_left_to_translate(kind: str) -> None:
    assert translations.run("msgattrib", kind, str(translations.PO)).strip() == ""


@needs_gettext
def test_the_compiled_catalogue_says_what_the_text_says(tmp_path: Path) -> None:
    assert catalogue(MO.read_bytes()) == compiled(translations.PO, tmp_path), (
        "run `make i18n`"
    )


def test_placeholders_are_the_same_in_both_languages() -> None:
    texts = catalogue(MO.read_bytes())
    assert len(texts) > 100
    for english, chinese in texts.items():
        theirs = PLACEHOLDER.findall(chinese)
        if isinstance(english, tuple):
            # One form for every number; the English of one thing may leave the number out.
            english, _ = english
            theirs = [name for name in theirs if name in english or name not in NUMBERS]
        assert sorted(PLACEHOLDER.findall(english)) == sorted(theirs), english


def test_the_texts_of_pages_are_chinese_where_that_is_chosen() -> None:
    with translation.override("zh-hans"):
        assert translation.gettext("storage nodes") == "存储节点"
        assert translation.gettext("clone of a master") == "从母盘克隆"
    assert translation.gettext("storage nodes") == "storage nodes"


def test_the_switch_above_the_page_turns_it_chinese(
    layout: Layout, administrator: Actor
) -> None:
    services.user_create(
        actor=administrator,
        username="victor",
        password="correct horse battery",
        role="viewer",
    )
    client = Client()
    form = {"username": "victor", "password": "correct horse battery"}
    client.post("/admin/login/", form)
    assert "Storage nodes" in client.get("/admin/").content.decode()
    client.post("/i18n/setlang/", {"language": "zh-hans", "next": "/admin/"})
    page = client.get("/admin/").content.decode()
    assert "存储节点" in page
    assert "Storage nodes" not in page


@needs_gettext
def test_the_command_says_how_much_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    po = tmp_path / "django.po"
    po.write_text(
        translations.PO.read_text(encoding="utf-8").replace(
            'msgstr "存储节点"', 'msgstr ""', 1
        ),
        encoding="utf-8",
    )
    monkeypatch.setattr(translations, "PO", po)
    from django.core.management import call_command

    call_command("translations")
    assert "1 texts have no translation" in capsys.readouterr().out
    assert po.with_suffix(".mo").exists()


def test_the_command_names_the_package_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from django.core.management import CommandError, call_command

    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CommandError, match="apt-get install gettext"):
        call_command("translations")


def test_the_terms_are_in_the_glossary() -> None:
    text = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
    for word in ("存储节点", "母盘", "系统盘", "镜像", "绑定", "发起端"):
        assert word in text


def test_the_compiled_catalogue_is_in_git() -> None:
    done = subprocess.run(
        ["git", "check-ignore", "-q", str(MO)], cwd=REPOSITORY, check=False
    )
    assert done.returncode != 0
