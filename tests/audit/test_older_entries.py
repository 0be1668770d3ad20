"""A trail that is longer than the index: what lies before it is found in the file, as far as it goes."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from audit import older, selectors
from audit.adapters import OperationsJournal
from audit.wanted import Wanted
from ipxeready import index
from ipxeready.actors import VIEWER, Actor
from ipxeready.storage import jsonl
from ipxeready.storage.paths import Layout
from ipxeready.users import services as users

PASSWORD = "correct horse battery"
LIST = "/admin/audit/operation/"
START = datetime(2026, 1, 1, tzinfo=UTC)
LINES = 2000
KEPT = 100


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index keeps a hundred lines, and files are read in small blocks."""
    monkeypatch.setattr(OperationsJournal, "keep", KEPT)
    monkeypatch.setattr(jsonl, "BLOCK", 512)


def _line(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "ts": (START + timedelta(hours=number)).isoformat(),
        "op": "lun.list" if number % 2 else "worker.boot.set",
        "status": "failed" if number % 100 == 0 else "ok",
        "user": "alice",
        "worker_id": f"w{number % 7}",
        "note": "Größe" if number % 50 == 0 else "plain",
        **more,
    }


@pytest.fixture
def trail(layout: Layout) -> Path:
    """Two thousand entries, an hour between them; some lines among them are none."""
    path = layout.operations
    with path.open("wb") as stream:
        for number in range(1, LINES + 1):
            stream.write(jsonl.encode(_line(number)))
            if number % 333 == 0:
                stream.write(b'\n[1]\n{"no": "id"}\n{"id": "x"}\nnot json\n')
        stream.write(b'{"id": 5000, "torn')
    index.ensure_fresh(wait=True)
    assert selectors.operations().count() <= KEPT
    return path


def _ids(rows: list[Any]) -> list[int]:
    return [row.pk for row in rows]


@pytest.mark.usefixtures("trail")
@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        (Wanted(), lambda n: True),
        (Wanted(op="lun.list"), lambda n: n % 2 == 1),
        (Wanted(status="failed"), lambda n: n % 100 == 0),
        (Wanted(worker_id="w3", op="lun.list"), lambda n: n % 7 == 3 and n % 2),
        (Wanted(worker_id="w"), lambda n: False),
        (Wanted(user="alice", agent="a"), lambda n: False),
        (Wanted(search="größe"), lambda n: n % 50 == 0),
        (Wanted(search="Größe W3"), lambda n: n % 50 == 0 and n % 7 == 3),
        (Wanted(search="PLAIN boot"), lambda n: n % 50 and n % 2 == 0),
        (Wanted(from_time=START + timedelta(hours=700)), lambda n: n >= 700),
        (Wanted(to_time=START + timedelta(hours=300)), lambda n: n < 300),
        (
            Wanted(
                from_time=START + timedelta(hours=100),
                to_time=START + timedelta(hours=1990),
            ),
            lambda n: 100 <= n < 1990,
        ),
    ],
    ids=range(12),
)
def test_pages_in_both_directions_give_every_entry_once(
    wanted: Wanted, holds: Any
) -> None:
    expected = [number for number in range(1, LINES + 1) if holds(number)]
    down: list[int] = []
    before = None
    while True:
        found = selectors.backwards(wanted, before=before, limit=97)
        down += _ids(found.rows)
        if not found.more:
            break
        before = found.cursor
    assert down == expected[::-1]
    up: list[int] = []
    since = 0
    while True:
        found = selectors.forwards(wanted, since=since, limit=97)
        up += _ids(found.rows)
        if not found.more:
            break
        since = found.cursor
    assert up == expected


@pytest.mark.usefixtures("trail")
def test_looking_ends_in_time_and_goes_on_from_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(older, "_EVERY", 10)
    seen: list[int] = []
    rows: list[int] = []
    before = None
    while True:
        found = selectors.backwards(
            Wanted(worker_id="w3", status="failed"),
            before=before,
            limit=50,
            patience=0,
        )
        rows += _ids(found.rows)
        if not found.more:
            break
        before = found.cursor
        seen.append(before)
    assert rows == [n for n in range(LINES, 0, -1) if n % 7 == 3 and n % 100 == 0]
    assert len(seen) > 100
    assert seen == sorted(seen, reverse=True)


def test_no_page_reads_the_whole_file(
    trail: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = []
    parse = jsonl.parse
    monkeypatch.setattr(
        jsonl, "parse", lambda *args: (parsed.append(1), parse(*args))[1]
    )
    selectors.backwards(Wanted(), before=1000, limit=20)
    assert selectors.operation(500).pk == 500
    selectors.backwards(
        Wanted(to_time=START + timedelta(hours=300)), before=None, limit=20
    )
    assert len(parsed) < 300


@pytest.mark.usefixtures("trail")
def test_the_api_goes_back_to_the_first_line(api: APIClient) -> None:
    assert [e["id"] for e in api.get("/operations?limit=3").json()["entries"]] == [
        1,
        2,
        3,
    ]
    page = api.get("/operations?before=500&limit=3&op=lun.list").json()
    assert [entry["id"] for entry in page["entries"]] == [499, 497, 495]
    page = api.get("/operations?since=1890&limit=300").json()
    assert [entry["id"] for entry in page["entries"]] == list(range(1891, LINES + 1))
    page = api.get("/operations?before=1").json()
    assert page == {"next_cursor": 1, "entries": []}
    page = api.get("/operations?user=alice&search=Gr%C3%B6%C3%9Fe&limit=2").json()
    assert [entry["id"] for entry in page["entries"]] == [50, 100]
    page = api.get("/operations?from_time=2026-01-05T00:00:00%2B00:00&limit=1").json()
    assert [entry["id"] for entry in page["entries"]] == [96]
    assert api.get("/operations?from_time=yesterday").status_code == 400


@pytest.fixture
def window(trail: Path, administrator: Actor) -> Client:
    """Somebody who looks, over the trail."""
    users.user_create(
        actor=administrator, username="victor", password=PASSWORD, role=VIEWER
    )
    client = Client()
    client.post("/admin/login/", {"username": "victor", "password": PASSWORD})
    return client


def _exported(client: Client, query: str) -> bytes:
    answer = client.get(f"{LIST}export/?{query}")
    assert answer.status_code == 200
    assert answer.streaming
    return b"".join(answer)


def test_an_old_entry_has_its_page_and_an_absent_one_none(window: Client) -> None:
    page = window.get(f"{LIST}500/change/")
    assert page.status_code == 200
    assert f"{LIST}493/change/" in page.content.decode()
    assert f"{LIST}507/change/" in page.content.decode()
    for number in ("99999", "0", "x", "-1", "9" * 30):
        assert window.get(f"{LIST}{number}/change/").status_code == 404


def test_json_lines_are_the_lines_of_the_file(window: Client, trail: Path) -> None:
    lines = _exported(window, "format=jsonl&op=worker.boot.set").splitlines()
    assert [json.loads(line)["id"] for line in lines] == list(range(2, LINES + 1, 2))
    assert set(lines) <= set(trail.read_bytes().splitlines())
    assert _exported(window, "format=jsonl&worker_id=nobody") == b""


def test_csv_computes_nothing_in_a_spreadsheet(window: Client, layout: Layout) -> None:
    evil = (
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "  =1",
        "＝1",
        "plain",
        "a=1",
    )
    with layout.operations.open("ab") as stream:
        stream.write(b"\n")
        for number, text in enumerate(evil):
            line = _line(6000 + number, op="x.csv", worker_id=text, client=text)
            stream.write(jsonl.encode({**line, "=cmd|' /C calc'!A0": text}))
        nul = {"a": 'q"uote,\n', "b": "\0"}
        stream.write(jsonl.encode(_line(7000, op="x.csv", status="\0", user=nul)))
    text = _exported(window, "format=csv&op=x.csv")
    assert text.startswith(b"\xef\xbb\xbfid,ts,op,")
    rows = list(csv.DictReader(io.StringIO(text.decode("utf-8-sig"), newline="")))
    assert [row["worker_id"] for row in rows[:-1]] == [
        *(f"'{text}" for text in evil[:8]),
        *evil[8:],
    ]
    assert all(row["details"].startswith("{") for row in rows)
    assert json.loads(rows[-1]["user"]) == {"a": 'q"uote,\n', "b": "\0"}


def test_exports_have_names_with_the_date_and_other_forms_are_not_there(
    window: Client,
) -> None:
    answer = window.get(f"{LIST}export/?format=csv")
    name = answer["Content-Disposition"]
    answer.close()
    assert name.startswith('attachment; filename="operations-20')
    assert name.endswith('.csv"')
    assert window.get(f"{LIST}export/?format=exe").status_code == 404
    assert window.post(f"{LIST}export/").status_code == 405
    login = Client().get(f"{LIST}export/")
    assert login.status_code == 302


def test_after_a_rotation_the_index_still_has_what_the_file_lost(
    window: Client, trail: Path
) -> None:
    trail.rename(trail.with_suffix(".1"))
    trail.write_bytes(jsonl.encode(_line(LINES + 1)))
    lines = _exported(window, "format=jsonl").splitlines()
    found = [json.loads(line)["id"] for line in lines]
    assert found == list(range(LINES - KEPT + 1, LINES + 2))
    page = window.get(f"{LIST}?before={LINES - KEPT + 1}")
    assert page.content.count(b"<tr data-id=") == 0


def test_how_many_are_newer_is_said_in_words(window: Client) -> None:
    answer = window.get(f"{LIST}newer/?since={LINES - 4}&op=lun.list").json()
    assert answer == {"count": 2, "words": "2 newer entries, show"}
    answer = window.get(f"{LIST}newer/?since={LINES - 1}&op=worker.boot.set").json()
    assert answer == {"count": 1, "words": "1 newer entry, show"}
    assert window.get(f"{LIST}newer/?since={LINES}&op=lun.list").json()["count"] == 0


@pytest.mark.parametrize(
    "ts",
    ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "never", 5, None, []],
)
def test_a_time_that_is_none_is_shown_as_it_stands(
    window: Client, layout: Layout, ts: Any
) -> None:
    with layout.operations.open("ab") as stream:
        stream.write(b"\n" + jsonl.encode(_line(6000, ts=ts)))
    page = window.get(f"{LIST}?period=24h&from_time=x")
    assert page.status_code == 200
    assert window.get(LIST).content.count(b"<tr data-id=") == 100
    assert window.get(f"{LIST}6000/change/").status_code == 200


def test_halving_finds_the_first_line_where_something_holds(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    text = b""
    begins = {}
    for number in range(1, 300):
        begins[number] = len(text)
        text += b'{"id": %d, "x": "%s"}\n' % (number, b"y" * (number * 7 % 90))
        text += b"junk\n" * (number % 5)
    path.write_bytes(text)
    for number, offset in begins.items():
        found = jsonl.first_where(path, lambda data, n=number: data["id"] >= n)
        assert text[found:].lstrip(b"junk\n") == text[offset:], number
    assert jsonl.first_where(path, lambda data: False) == len(text)
    path.write_bytes(b"")
    assert jsonl.first_where(path, lambda data: True) == 0
