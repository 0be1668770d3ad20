"""SIGKILL at every step of a write: wholly old or wholly new, told once, nothing left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipxeready import index
from ipxeready.index.verify import verify_index
from ipxeready.storage import intents
from ipxeready.storage.paths import Layout
from tests.index.helpers import create, killed_at, ledger, lines, mac
from workers.models import Binding, Worker

#: The points of one write over two files; from "declared" on the write happens, whatever dies.
POINTS = [
    ("prepared", 1, False),
    ("declared", 1, True),
    ("file", 1, True),
    ("file", 2, True),
    ("logged", 1, True),
    ("indexing", 1, True),
    ("committed", 1, True),
]


def leftovers(layout: Layout) -> list[Path]:
    """Temporary files and intents anywhere below the root."""
    found = list(layout.root.rglob("*.tmp")) + list(layout.root.rglob("*.unfinished"))
    if layout.intents.exists():
        found += layout.intents.iterdir()
    return found


def state(layout: Layout) -> tuple[bool, bool, int]:
    """Is worker-02 in the ledger, in the hosts file, and how often in the audit."""
    return (
        "worker-02" in ledger(layout),
        f"{mac(2)},worker-02" in layout.dhcp_hosts.read_text(),
        sum(line.get("worker_id") == "worker-02" for line in lines(layout)),
    )


@pytest.mark.case(93)
@pytest.mark.parametrize("by", ["reader", "writer"])
@pytest.mark.parametrize(("point", "which", "happens"), POINTS)
def test_a_kill_leaves_the_write_wholly_done_or_wholly_undone(
    layout: Layout, point: str, which: int, happens: bool, by: str
) -> None:
    create(1)
    inode = layout.dhcp_hosts.stat().st_ino
    killed_at(point, which, lambda: create(2))
    if by == "reader":
        index.ensure_fresh()
    else:
        create(3)
    assert state(layout) == ((True, True, 1) if happens else (False, False, 0))
    if by == "reader" and not happens:
        create(3)  # what died before it was declared is cleaned by the next writer
    assert leftovers(layout) == []
    assert not intents.pending(layout)
    assert verify_index() == []
    assert Worker.objects.filter(pk="worker-02").exists() is happens
    assert Binding.objects.filter(mac=mac(2)).exists() is happens
    assert layout.dhcp_hosts.stat().st_ino == inode
    assert [line for line in lines(layout) if line["op"] == "external.edit"] == []
    if by == "writer":
        assert Worker.objects.filter(pk="worker-03").exists()
    # Doing it again ends at the same place.
    create(2)
    assert state(layout)[:2] == (True, True)


@pytest.mark.case(89)
@pytest.mark.parametrize("keep", [0, 1, 30, 90])
def test_a_torn_hosts_file_is_completed(layout: Layout, keep: int) -> None:
    create(1)
    layout.dhcp_hosts.write_text(
        "# by hand\n" + "".join(f"{mac(n)},other-{n}\n" for n in range(10, 50))
    )
    index.ensure_fresh(wait=True)
    before = layout.dhcp_hosts.read_bytes()
    killed_at("file", 1, lambda: create(2))  # the ledger is written, the hosts file not
    whole = before + f"{mac(2)},worker-02\n".encode()
    # What write() had got through when the power went.
    layout.dhcp_hosts.write_bytes(whole[:keep] + before[keep:])
    index.ensure_fresh(wait=True)
    assert layout.dhcp_hosts.read_bytes() == whole
    assert verify_index() == []


@pytest.mark.parametrize("name", ["workers.yml", "dhcp-hosts.conf"])
@pytest.mark.parametrize(("point", "which"), [("declared", 1), ("file", 1)])
def test_a_hand_edit_after_the_crash_stays_and_is_told(
    layout: Layout, name: str, point: str, which: int
) -> None:
    create(1)
    killed_at(point, which, lambda: create(2))
    path = layout.workers_yml if name == "workers.yml" else layout.dhcp_hosts
    mine = path.read_bytes() + (
        b"# edited by hand\n" if path == layout.dhcp_hosts else b"\n# edited by hand\n"
    )
    path.write_bytes(mine)
    index.ensure_fresh(wait=True)
    assert path.read_bytes() == mine
    kept = path.with_name(f"{name}.unfinished").read_text()
    assert "worker-02" in kept
    told = [
        line for line in lines(layout, "external.edit") if line["file"] == str(path)
    ]
    assert any(
        line["status"] == "failed" and ".unfinished" in line["error"] for line in told
    )
    assert any("unfinished" in problem.message for problem in index.problems())
    assert not intents.pending(layout)
    assert verify_index() == []
    create(3)
    assert "edited by hand" in path.read_text()
    # The operator has looked and removed it: the problem goes.
    path.with_name(f"{name}.unfinished").unlink()
    path.write_bytes(path.read_bytes() + b"# looked\n")
    index.ensure_fresh(wait=True)
    assert not any("unfinished" in problem.message for problem in index.problems())


def test_lines_cut_from_the_end_by_hand_are_an_edit_not_a_torn_write(
    layout: Layout,
) -> None:
    create(1)
    create(4)
    killed_at("file", 1, lambda: create(2))
    mine = layout.dhcp_hosts.read_bytes().splitlines(keepends=True)[0]
    layout.dhcp_hosts.write_bytes(mine)
    index.ensure_fresh(wait=True)
    assert layout.dhcp_hosts.read_bytes() == mine
    assert layout.dhcp_hosts.with_name("dhcp-hosts.conf.unfinished").exists()


def test_a_damaged_manifest_does_not_stop_writers_for_ever(layout: Layout) -> None:
    create(1)
    layout.intents.mkdir(exist_ok=True)
    (layout.intents / "intent.json").write_bytes(b"\0\0\0")
    index.ensure_fresh(wait=True)
    create(2)
    assert set(ledger(layout)) == {"worker-01", "worker-02"}
    assert (layout.state / "intent.damaged").exists()


def test_a_kill_while_recovering_is_recovered_again(layout: Layout) -> None:
    create(1)
    killed_at("declared", 1, lambda: create(2))
    # The recovery itself got as far as the first file.
    content = (layout.intents / "content-0").read_bytes()
    layout.workers_yml.write_bytes(content)
    index.ensure_fresh(wait=True)
    assert state(layout) == (True, True, 1)
    assert verify_index() == []
