"""Every page in every look: it answers, fits, hinders nobody, complains of nothing, and is pictured."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import pictures
from tests.browser.chromium import CODES
from tests.browser.conftest import PageAs
from tests.browser.gallery import Gallery, gallery
from tests.browser.looking import (
    assert_accessible,
    assert_fits,
    assert_readable_in_focus,
)
from tests.browser.sights import SIGHTS, Sight


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gallery]:
    """The room that is pictured."""
    with gallery(tmp_path_factory.mktemp("gallery")) as made:
        yield made


@pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS)
def test_a_page_is_good_to_use_in_every_look(
    sight: Sight, page_as: PageAs, hung: Gallery
) -> None:
    with sight.circumstances(hung):
        for looks in (pictures.PLAIN, pictures.CHINESE):
            lang = looks[0].lang
            page = page_as(sight.role, lang, product=hung.product)
            sight.visit(page, hung)
            if sight.ours:
                assert page.get_attribute("html", "lang") == CODES[lang]
            for look in looks:
                look.on(page)
                if sight.ours:
                    assert_fits(page)
                    if look in pictures.JUDGED and not pictures.only_pictures():
                        assert_accessible(page)
                        assert_readable_in_focus(page)
                if lang == "en" or sight.main:
                    file = pictures.folder() / look.file(sight.name)
                    pictures.take(page, file, hung.words())
