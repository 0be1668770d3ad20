"""The tables of pictures in the README: `python -m tests.browser.readme_pages` writes them there, a test compares."""

from __future__ import annotations

from html import escape

from ipxeready.conf import REPOSITORY
from tests.browser.pictures import CHINESE, PLAIN, Look
from tests.browser.sights import AREAS, SIGHTS, Sight

README = REPOSITORY / "README.md"
FOLDER = "docs/screenshots"
BEGIN, END = "<!-- pages: made by tests.browser.readme_pages -->\n", "<!-- /pages -->\n"
_WIDE, _NARROW = 170, 60


def files() -> set[str]:
    """The pictures that there must be, and no other."""
    plain = {look.file(sight.name) for sight in SIGHTS.values() for look in PLAIN}
    mains = [sight for sight in SIGHTS.values() if sight.main]
    return plain | {look.file(sight.name) for sight in mains for look in CHINESE}


def tables() -> str:
    """All of them, one an area, and one in Chinese."""
    parts = []
    for area, sights in AREAS.items():
        rows = "".join(_row(sight, PLAIN, sight.purpose) for sight in sights)
        parts.append(
            f"### {area}\n\n{_head('light', 'dark', 'phone', 'phone, dark')}{rows}"
        )
    mains = [sight for sight in SIGHTS.values() if sight.main]
    rows = "".join(_row(sight, CHINESE) for sight in mains)
    parts.append(f"### In Chinese\n\n{_head('dark', 'phone')}{rows}")
    return "\n".join(parts)


def written() -> str:
    """The README with the tables of now."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{tables()}{END}{after}"


def _head(*looks: str) -> str:
    return f"| Page | {' | '.join(looks)} |\n|{'---|' * (len(looks) + 1)}\n"


def _row(sight: Sight, looks: tuple[Look, ...], purpose: str = "") -> str:
    about = f"**{sight.title}**" + (f": {purpose}" if purpose else "")
    cells = " | ".join(_picture(sight, look) for look in looks)
    return f"| {about} | {cells} |\n"


def _picture(sight: Sight, look: Look) -> str:
    file = f"{FOLDER}/{look.file(sight.name)}"
    words = [sight.title]
    words += ["in Chinese"] if look.lang == "zh" else []
    words += ["on a phone"] if look.narrow else []
    words += ["dark"] if look.dark else []
    width = _NARROW if look.narrow else _WIDE
    alt = escape(", ".join(words))
    return f'<a href="{file}"><img src="{file}" width="{width}" alt="{alt}"></a>'


if __name__ == "__main__":
    README.write_text(written(), encoding="utf-8")
