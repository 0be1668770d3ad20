"""Field cases of hand-edited files, from the file to the index, the API and back."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready import index
from ipxeready.conf import load
from ipxeready.errors import Unavailable
from ipxeready.index.verify import verify_index
from ipxeready.startup import prepare
from ipxeready.storage import faults
from ipxeready.storage.broken import RecordBroken
from ipxeready.storage.paths import Layout
from ipxeready.storage.yamlrecords import YamlText
from tests.index.helpers import ALICE, create, ledger, lines, mac, restart
from workers.adapters import normalized
from workers.models import Worker


def records(content: str) -> dict[str, Any]:
    text = YamlText(content.encode(), "workers")
    text.check(list(text.entries()))
    return {key: text.value(key) for key in text.entries()}


def seen(path: Path) -> tuple[int, int, bytes]:
    st = path.stat()
    return st.st_ino, st.st_mtime_ns, path.read_bytes()


def problems_of(api: APIClient, name: str) -> dict[str, Any]:
    answer = api.get("/healthz?verbose=1").json()
    found: dict[str, Any] = next(f for f in answer["files"] if f["name"] == name)
    return found


@pytest.mark.case(26)
@pytest.mark.parametrize(
    "address",
    [
        "52:54:00:12:34:56",
        "12:34:56:12:34:56",
        "52:54:00:12:34:99",
        "00:11:22:33:44:55",
    ],
)
def test_an_unquoted_mac_stays_that_mac(address: str) -> None:
    found = records(f"workers:\n  {address}:\n    mac: {address}\n")
    assert found == {address: {"mac": address}}
    text = YamlText(f"workers:\n  w1:\n    mac: {address}\n".encode(), "workers")
    text.put("w1", {"mac": address, "hostname": "a"})
    assert f"    mac: {address}\n" in text.render().decode()
    assert records(text.render().decode())["w1"]["mac"] == address


@pytest.mark.case(27)
@pytest.mark.parametrize("again", ["worker-01:", '"worker-01":'])
def test_a_key_that_stands_twice_is_named_with_both_lines(
    layout: Layout, api: APIClient, again: str
) -> None:
    create(1)
    layout.workers_yml.write_text(
        f"workers:\n  worker-01:\n    hostname: worker-01\n  {again}\n    hostname: b\n"
    )
    before = seen(layout.workers_yml)
    file = problems_of(api, "workers")
    assert "'worker-01' stands twice, on line 2 and line 4" in file["error"]
    assert file["ok"] is False
    assert api.get("/workers/worker-01").json()["hostname"] == "worker-01"
    answer = api.post("/workers", {"worker_id": "worker-09", "mac": mac(9)})
    assert answer.status_code == 503
    assert "line 4" in answer.json()["detail"]
    assert seen(layout.workers_yml) == before


BROKEN = 'workers:\n  worker-01:\n    hostname: "worker-01\n  worker-02:\n    hostname: worker-02\n'


@pytest.mark.case(28)
def test_a_file_that_does_not_parse_is_read_from_memory_and_never_written(
    layout: Layout, api: APIClient, stranger: APIClient
) -> None:
    create(1)
    create(2)
    layout.workers_yml.write_text(BROKEN)
    before = seen(layout.workers_yml)
    hosts = layout.dhcp_hosts.read_bytes()

    def untouched() -> bool:
        return seen(layout.workers_yml) == before

    # Reads go on.
    assert [w["worker_id"] for w in api.get("/workers").json()] == [
        "worker-01",
        "worker-02",
    ]
    file = problems_of(api, "workers")
    assert file["line"] == 3
    assert str(layout.workers_yml) in file["problems"][0]
    assert "line 3, column 15" in file["problems"][0]
    # A machine that is known boots, a new one gets an answer that it can run.
    assert stranger.get("/boot-vars", {"mac": mac(1)}).status_code == 200
    answer = stranger.get("/boot-vars", {"mac": mac(77)})
    assert answer.status_code == 200
    assert answer.content.startswith(b"#!ipxe")
    assert untouched()
    # Writes are refused with file, line and column.
    for answer in (
        api.post("/workers", {"worker_id": "worker-09", "mac": mac(9)}),
        api.put("/workers/worker-01/default-os", {"menu_timeout": 5}),
        api.delete("/workers/worker-02"),
    ):
        assert answer.status_code == 503, answer.content
        words = answer.json()["detail"]
        assert str(layout.workers_yml) in words
        assert "line 3, column 15" in words
    assert untouched()
    assert layout.dhcp_hosts.read_bytes() == hosts
    # So it is after a restart: what can be told apart is served, the rest is missing.
    restart()
    assert untouched()
    assert set(Worker.objects.values_list("pk", flat=True)) == {"worker-02"}
    assert (
        api.post("/workers", {"worker_id": "worker-09", "mac": mac(9)}).status_code
        == 503
    )
    assert untouched()
    assert (
        len(lines(layout, "file.broken")) == 2
    )  # once when it broke, once at the start
    # Mended: all is well again at once.
    layout.workers_yml.write_text(BROKEN.replace('"worker-01', "worker-01"))
    assert problems_of(api, "workers")["ok"] is True
    assert (
        api.post("/workers", {"worker_id": "worker-09", "mac": mac(9)}).status_code
        == 201
    )
    assert set(ledger(layout)) == {"worker-01", "worker-02", "worker-09"}
    assert verify_index() == []


@pytest.mark.case(28)
def test_a_fresh_process_leaves_a_broken_file_alone(
    layout: Layout, tmp_path: Path
) -> None:
    create(1)
    create(2)
    layout.workers_yml.write_text(BROKEN)
    before = seen(layout.workers_yml)
    root = Path(__file__).parents[2]
    code = (
        "import django; django.setup()\n"
        "from ipxeready import index, startup\n"
        "from django.conf import settings\n"
        "startup.prepare(settings.IPXE, settings.IPXE_LAYOUT)\n"
        "index.ensure_fresh(wait=True)\n"
        "from workers.models import Worker\n"
        "print(sorted(Worker.objects.values_list('pk', flat=True)))\n"
        "print([p.message for p in index.problems()])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={
            "PATH": os.environ["PATH"],
            "IPXE_ROOT": str(layout.root),
            "IPXE_CP_TOKEN": "x" * 20,
            "RUNTIME_DIRECTORY": str(tmp_path),
            "DJANGO_SETTINGS_MODULE": "ipxeready.settings.control",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "['worker-02']" in done.stdout
    assert "line 3, column 15" in done.stdout
    assert seen(layout.workers_yml) == before
    names = [path.name for path in tmp_path.glob("ipxeready-index-*.sqlite3")]
    assert len(names) == 1
    assert names[0].count("-") == 4  # user, folder and schema


@pytest.mark.case(28)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("worker:\n  a: {}\n", "`workers:` is missing"),
        ("workers: [a]\n", "must hold a mapping"),
        ("- a\n", "must be a mapping"),
        ("workers: {}\n---\nworkers: {}\n", "expected a single document"),
        ("\u00a0 worker-01:\n    hostname: a\n", "`workers:` is missing"),
    ],
)
def test_another_shape_is_broken_too(layout: Layout, content: str, words: str) -> None:
    create(1)
    layout.workers_yml.write_text(content)
    index.ensure_fresh(wait=True)
    assert any(words in problem.message for problem in index.problems())
    assert Worker.objects.count() == 1
    with pytest.raises(Unavailable, match="takes no writes"):
        create(2)
    assert layout.workers_yml.read_text() == content


@pytest.mark.case(28)
def test_a_file_that_is_gone_is_not_made_anew(layout: Layout, settings: Any) -> None:
    create(1)
    layout.workers_yml.unlink()
    index.ensure_fresh(wait=True)
    assert Worker.objects.count() == 1
    with pytest.raises(Unavailable, match="gone.*backup/workers.yml"):
        create(2)
    prepare(settings.IPXE, layout)
    assert not layout.workers_yml.exists()
    restart()
    # A cold start reads on from what we wrote last.
    assert Worker.objects.count() == 1
    with pytest.raises(Unavailable, match="gone"):
        create(2)
    layout.workers_yml.write_bytes((layout.backup / "workers.yml").read_bytes())
    create(2)
    assert set(ledger(layout)) == {"worker-01", "worker-02"}
    assert verify_index() == []


def test_a_missing_file_without_records_is_made(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "root")
    config = load({"IPXE_ROOT": str(layout.root), "IPXE_CP_TOKEN": "x" * 20})
    prepare(config, layout)
    layout.backup.mkdir(exist_ok=True)
    for path, empty in (
        (layout.workers_yml, "# only words\nworkers: {}\n"),
        (layout.settings_json, "{}\n"),
        (layout.dhcp_hosts, "# nothing\n"),
    ):
        (layout.backup / path.name).write_text(empty)
        path.unlink()
    prepare(config, layout)
    assert layout.workers_yml.exists()
    assert layout.settings_json.exists()
    assert layout.dhcp_hosts.exists()


@pytest.mark.case(28)
@pytest.mark.case(92)
@pytest.mark.parametrize("name", ["workers.yml", "dhcp-hosts.conf"])
def test_zero_bytes_where_records_were_is_damage(
    layout: Layout, api: APIClient, name: str
) -> None:
    create(1)
    path = layout.workers_yml if name == "workers.yml" else layout.dhcp_hosts
    path.write_bytes(b"")
    source = "workers" if name == "workers.yml" else "hosts"
    for start in (False, True):
        if start:
            restart()
        assert f"copy state/backup/{name}" in problems_of(api, source)["error"]
        assert api.get("/workers/worker-01").json()["mac"] == mac(1)
        assert (
            api.post("/workers", {"worker_id": "w9", "mac": mac(9)}).status_code == 503
        )
        assert path.read_bytes() == b""
    path.write_bytes((layout.backup / name).read_bytes())
    create(2)
    assert verify_index() == []


@pytest.mark.case(28)
def test_a_file_that_cannot_be_read_is_not_replaced(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(1)
    before = layout.workers_yml.read_bytes()
    real = Path.read_bytes

    def refusing(path: Path) -> bytes:
        if path == layout.workers_yml:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    layout.workers_yml.chmod(0)
    monkeypatch.setattr(Path, "read_bytes", refusing)
    index.ensure_fresh(wait=True)
    assert any("Permission denied" in p.message for p in index.problems())
    assert Worker.objects.count() == 1
    with pytest.raises(Unavailable, match="mend its mode or owner"):
        create(2)
    monkeypatch.undo()
    assert layout.workers_yml.read_bytes() == before
    layout.workers_yml.chmod(0o644)
    create(2)
    assert Worker.objects.count() == 2


WORDS = [
    "no",
    "on",
    "012",
    "1_000",
    "0x1f",
    "12:30",
    "2026-07-12",
    "null",
    "1.5",
    "~",
    "off",
]


@pytest.mark.case(29)
@pytest.mark.parametrize("word", [*WORDS, '"no"'])
def test_words_are_the_text_that_was_typed(word: str) -> None:
    text = YamlText(
        f"workers:\n  {word}:\n    note: '='\n    alias: {word}\n".encode(), "workers"
    )
    name = word.strip('"')
    assert list(text.entries()) == [name]
    typed = None if word in ("null", "~") else name
    value = text.value(name)
    assert value == {"note": "=", "alias": typed}
    text.put(name, {**(value or {}), "hostname": name})
    text.put("other", {"hostname": name, "note": "="})
    again = YamlText(text.render(), "workers")
    assert again.value(name) == {"note": "=", "alias": typed, "hostname": name}
    assert again.value("other") == {"hostname": name, "note": "="}


@pytest.mark.case(29)
def test_a_plain_equals_sign_is_text() -> None:
    assert records("workers:\n  a:\n    note: =\n") == {"a": {"note": "="}}


@pytest.mark.case(30)
@pytest.mark.parametrize(
    ("bad", "line", "column"),
    [
        ("workers:\n  worker-01:\n\thostname: a\n", 3, 1),
        ("workers:\n  worker-01:\n    hostname: a\t# why\n", 3, 16),
        (
            "workers:\n  worker-01:\n    hostname: a\n    boot:\n      \tmenu_timeout: 5\n",
            5,
            7,
        ),
    ],
)
def test_a_tab_is_named_with_its_place(
    layout: Layout, api: APIClient, bad: str, line: int, column: int
) -> None:
    create(1)
    layout.workers_yml.write_text(bad)
    before = seen(layout.workers_yml)
    assert (
        f"tab at line {line}, column {column}, use spaces"
        in problems_of(api, "workers")["error"]
    )
    answer = api.post("/workers", {"worker_id": "worker-09", "mac": mac(9)})
    assert answer.status_code == 503
    assert f"tab at line {line}, column {column}" in answer.json()["detail"]
    assert seen(layout.workers_yml) == before


WRITTEN = """\
# Room 机房 A. Ask Li before you change anything.
workers:
  # first row
  worker-02:   # by the door
    asset_tag: X7
    hostname: worker-02
    note: 机房 A
    arch: x86_64

  worker-01:
    hostname: worker-01 # quiet
    'odd key': "quoted: yes"
    disks: []

# the end
"""


@pytest.mark.case(32)
def test_a_change_shows_in_the_lines_of_its_machine_only(
    layout: Layout, api: APIClient
) -> None:
    layout.workers_yml.write_text(WRITTEN)
    layout.dhcp_hosts.write_text(f"# hand\n{mac(1)},worker-01\n{mac(2)},worker-02\n")
    answer = api.put("/workers/worker-01/default-os", {"menu_timeout": 7000})
    assert answer.status_code == 200, answer.content
    changed = [
        line
        for line in difflib.ndiff(
            WRITTEN.splitlines(), layout.workers_yml.read_text().splitlines()
        )
        if line[0] in "+-"
    ]
    assert changed
    first = WRITTEN.splitlines().index("  worker-01:")
    assert layout.workers_yml.read_text().startswith(
        "\n".join(WRITTEN.splitlines()[: first + 1])
    )
    assert not [
        line for line in changed if line.startswith("-") and "disks" not in line
    ]
    for kept in (
        "机房 A",
        "asset_tag: X7",
        "# quiet",
        "'odd key': \"quoted: yes\"",
        "# the end",
    ):
        assert kept in layout.workers_yml.read_text()
    # A binding touches its line of the other file.
    assert api.put("/workers/worker-02/mac", {"mac": mac(5)}).status_code == 200
    assert (
        layout.dhcp_hosts.read_text()
        == f"# hand\n{mac(1)},worker-01\n{mac(5)},worker-02\n"
    )
    assert verify_index() == []


@pytest.mark.case(33)
def test_a_bad_record_is_set_aside_and_kept(layout: Layout, api: APIClient) -> None:
    body = "".join(
        f"  worker-{n:02d}:\n    hostname: worker-{n:02d}\n" for n in range(1, 31)
    )
    body = body.replace("    hostname: worker-07\n", "    hostname: [7]\n")
    body = body.replace("    hostname: worker-08\n", "    arch: x86_64\n")
    layout.workers_yml.write_text("workers:\n" + body)
    assert len(api.get("/workers").json()) == 28
    broken = {
        p.record: (p.line, p.message)
        for p in index.problems()
        if p.code == "record.broken"
    }
    assert set(broken) == {"worker-07", "worker-08"}
    assert broken["worker-07"][0] == 14
    assert "hostname" in broken["worker-08"][1]
    assert problems_of(api, "workers")["ok"] is True
    create(40)
    text = layout.workers_yml.read_text()
    assert "    hostname: [7]\n" in text
    assert "  worker-08:\n    arch: x86_64\n" in text
    # It is not changed behind the operator's back either.
    with (
        pytest.raises(Unavailable, match="mend this record"),
        index.writing(actor=ALICE, op="t") as tx,
    ):
        tx.yaml("workers").put("worker-08", {"hostname": "worker-08"})
    assert verify_index() == []


@pytest.mark.case(33)
def test_a_record_that_goes_bad_keeps_its_last_good_rows(layout: Layout) -> None:
    create(1)
    good = layout.workers_yml.read_text()
    layout.workers_yml.write_text(
        good.replace("hostname: worker-01", "hostname: 'a b'")
    )
    index.ensure_fresh(wait=True)
    assert Worker.objects.get(pk="worker-01").hostname == "worker-01"
    assert index.problems().filter(record="worker-01").count() == 1
    layout.workers_yml.write_text(good)
    index.ensure_fresh(wait=True)
    assert index.problems().count() == 0
    assert verify_index() == []


@pytest.mark.parametrize("number", ["99999999999999999999999", "-1", "9" * 5000])
def test_a_number_that_no_table_holds_is_one_bad_record(
    layout: Layout, number: str
) -> None:
    layout.workers_yml.write_text(
        f"workers:\n  worker-01:\n    hostname: worker-01\n    boot:\n      menu_timeout: {number}\n"
        "  worker-02:\n    hostname: worker-02\n"
    )
    index.ensure_fresh(wait=True)
    assert list(Worker.objects.values_list("pk", flat=True)) == ["worker-02"]
    assert index.problems().filter(record="worker-01").count() == 1


ANCHORED = """\
defaults: &d
  arch: x86_64
  asset: A
workers:
  worker-01:
    <<: *d
    hostname: worker-01
  worker-02:
    <<: *d
    hostname: worker-02
  worker-03: {<<: *d, hostname: worker-03}
"""


@pytest.mark.case(35)
def test_anchors_are_resolved_and_kept(layout: Layout) -> None:
    layout.workers_yml.write_text(ANCHORED)
    index.ensure_fresh(wait=True)
    assert Worker.objects.get(pk="worker-02").data["asset"] == "A"
    with index.writing(actor=ALICE, op="t") as tx:
        record = tx.yaml("workers").get("worker-01")
        tx.yaml("workers").put("worker-01", {**record, "boot": {"menu_timeout": 5}})
    text = layout.workers_yml.read_text()
    assert text == ANCHORED.replace(
        "    hostname: worker-01\n",
        "    hostname: worker-01\n    boot:\n      menu_timeout: 5\n",
    )
    # Written in braces the merge would be written out: that is refused.
    with (
        pytest.raises(Unavailable, match="anchors in use"),
        index.writing(actor=ALICE, op="t") as tx,
    ):
        record = tx.yaml("workers").get("worker-03")
        tx.yaml("workers").put("worker-03", {**record, "boot": {"menu_timeout": 5}})
    assert layout.workers_yml.read_text() == text
    # So is a change of what the anchor says.
    with (
        pytest.raises(Unavailable, match="cannot be changed"),
        index.writing(actor=ALICE, op="t") as tx,
    ):
        record = tx.yaml("workers").get("worker-02")
        del record["asset"]
        tx.yaml("workers").put("worker-02", record)
    assert layout.workers_yml.read_text() == text
    assert verify_index() == []


@pytest.mark.case(37)
def test_an_edit_counts_from_the_next_request_on_and_is_not_lost(
    layout: Layout, api: APIClient, stranger: APIClient
) -> None:
    create(1)
    with layout.workers_yml.open("a") as file:
        file.write("  worker-31:\n    hostname: worker-31\n")
    with layout.dhcp_hosts.open("a") as file:
        file.write(f"{mac(31)},worker-31\n")
    answer = stranger.get("/boot-vars", {"mac": mac(31)})
    assert b"set hostname worker-31\n" in answer.content
    assert (
        api.post("/workers", {"worker_id": "worker-05", "mac": mac(5)}).status_code
        == 201
    )
    assert set(ledger(layout)) == {"worker-01", "worker-05", "worker-31"}
    told = lines(layout, "external.edit")
    assert told[0]["changed"] == ["worker-31"]
    assert verify_index() == []


@pytest.mark.case(38)
def test_an_old_buffer_saved_over_our_change_is_seen_and_ours_is_kept(
    layout: Layout,
) -> None:
    create(1)
    old = layout.workers_yml.read_text()
    create(7)
    ours = layout.workers_yml.read_bytes()
    layout.workers_yml.write_text(old)
    index.ensure_fresh()
    told = lines(layout, "external.edit")[-1]
    assert told["gone"] == ["worker-07"]
    # Our copy outlives the next write.
    create(8)
    assert Path(told["kept"]).read_bytes() == ours
    # A change that is decided on old knowledge still meets the hand edit.
    assert set(ledger(layout)) == {"worker-01", "worker-08"}


@pytest.mark.case(38)
def test_an_edit_in_the_moment_of_a_write_is_not_overwritten(layout: Layout) -> None:
    create(1)
    with (
        pytest.raises(Unavailable, match="edited by hand this very moment"),
        index.writing(actor=ALICE, op="t") as tx,
    ):
        tx.yaml("workers").put("worker-02", normalized({"hostname": "worker-02"}))
        with layout.workers_yml.open("a") as file:
            file.write("  worker-31:\n    hostname: worker-31\n")
    assert set(ledger(layout)) == {"worker-01", "worker-31"}
    create(2)
    assert set(ledger(layout)) == {"worker-01", "worker-02", "worker-31"}


@pytest.mark.case(90)
def test_the_hosts_file_keeps_its_inode_through_every_write(
    layout: Layout, api: APIClient, tmp_path: Path
) -> None:
    inode = layout.dhcp_hosts.stat().st_ino
    create(1)
    assert (
        api.post("/workers", {"worker_id": "worker-02", "mac": mac(2)}).status_code
        == 201
    )
    assert api.put("/workers/worker-02/mac", {"mac": mac(3)}).status_code == 200
    assert api.delete("/workers/worker-01").status_code == 200
    assert layout.dhcp_hosts.stat().st_ino == inode
    # sed -i gives it another one: that one is kept from then on.
    edited = tmp_path / "new"
    edited.write_bytes(layout.dhcp_hosts.read_bytes())
    edited.replace(layout.dhcp_hosts)
    other = layout.dhcp_hosts.stat().st_ino
    assert other != inode
    create(5)
    assert layout.dhcp_hosts.stat().st_ino == other
    assert f"{mac(5)},worker-05" in layout.dhcp_hosts.read_text()


@pytest.mark.case(97)
@pytest.mark.parametrize(
    "bad",
    ["!!python/object/apply:os.system ['touch /tmp/never']", "!!binary aGk=", "!own x"],
)
def test_foreign_tags_are_refused_with_their_line(layout: Layout, bad: str) -> None:
    create(1)
    layout.workers_yml.write_text(f"workers:\n  worker-01:\n    hostname: {bad}\n")
    index.ensure_fresh(wait=True)
    problem = index.problems().get(source="workers")
    assert problem.line == 3
    assert "is not allowed here" in problem.message
    assert Worker.objects.get(pk="worker-01").hostname == "worker-01"


def test_a_link_is_followed_not_replaced(layout: Layout, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere" / "workers.yml"
    real.parent.mkdir()
    real.write_bytes(layout.workers_yml.read_bytes())
    real.chmod(0o640)
    layout.workers_yml.unlink()
    layout.workers_yml.symlink_to(real)
    create(1)
    assert layout.workers_yml.is_symlink()
    assert "worker-01" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_put_that_cannot_be_done_leaves_the_text(layout: Layout) -> None:
    content = b"workers:\n  a: {hostname: a, # why\n    arch: b}\n"
    text = YamlText(content, "workers")
    with pytest.raises(RecordBroken, match="comments inside braces"):
        text.put("a", {"hostname": "b"})
    assert text.render() == content


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("workers_yml", "prepared"),
        ("workers_yml", "declared"),
        ("dhcp_hosts", "declared"),
        ("dhcp_hosts", "file"),  # the other one is written already
    ],
)
def test_an_edit_that_is_saved_while_we_write_is_not_overwritten(
    layout: Layout, api: APIClient, name: str, point: str
) -> None:
    create(1)
    before = {p: p.read_bytes() for p in (layout.workers_yml, layout.dhcp_hosts)}
    path: Path = getattr(layout, name)
    reached: list[str] = []

    def save(at: str) -> None:
        if at != point or reached:
            return
        reached.append(at)
        with path.open("ab") as file:
            file.write(b"# saved by hand\n")
        before[path] += b"# saved by hand\n"

    faults.install(save)
    try:
        with pytest.raises(Unavailable, match="edited by hand this very moment"):
            create(2)
    finally:
        faults.install(None)
    assert {p: p.read_bytes() for p in before} == before
    assert [w["worker_id"] for w in api.get("/workers").json()] == ["worker-01"]
    assert not any(line.get("worker_id") == "worker-02" for line in lines(layout))
    create(2)
    assert b"# saved by hand\n" in path.read_bytes()
    assert sorted(ledger(layout)) == ["worker-01", "worker-02"]
