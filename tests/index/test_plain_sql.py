"""What goes past Django's way of making SQL gives just what Django would."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, transaction

from agents.models import Agent
from ipxeready.index import ensure_fresh
from ipxeready.index.compiled import Compiled
from ipxeready.index.connection import writable
from ipxeready.index.models import IndexedRecord
from ipxeready.index.rows import delete, insert
from ipxeready.storage.paths import Layout
from workers import selectors
from workers.models import Binding, Cd, Disk, Worker

MAC = "52:54:00:00:00:01"


@pytest.fixture(autouse=True)
def files(layout: Layout) -> None:
    """A worker with every field in use, and one with none."""
    layout.agents_yml.write_text(
        "agents:\n  node-1: {base_url: 'http://192.0.2.3:4840', token: a, tags: [lio, room-7]}\n"
    )
    layout.workers_yml.write_text(
        "workers:\n"
        "  pc-1:\n    hostname: pc-1\n    default_os: ubuntu\n    note: 雪\n"
        "    boot: {menu_default: shell, menu_timeout: 9}\n    disks:\n"
        "      - {agent: node-1, iqn: 'iqn.2026-07.com.controller:pc-1.windows', os: windows}\n"
        "      - {agent: node-1, iqn: 'iqn.2026-07.com.controller:pc-1.ubuntu', os: ubuntu}\n"
        "    cd: {agent: node-1, iqn: 'iqn.2026-07.com.controller:pc-1.cd', iso: a.iso}\n"
        "  pc-2: {hostname: pc-2}\n"
    )
    layout.dhcp_hosts.write_text(
        f"{MAC},set:room,pc-1,192.0.2.9\n{MAC},52:54:00:00:00:02,pc-2\n"
    )
    ensure_fresh(wait=True)


def _fields(row: Any) -> dict[str, Any]:
    return {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
    }


def _same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    assert _fields(found) == _fields(wanted)
    for name, value in _fields(wanted).items():
        assert type(getattr(found, name)) is type(value), name


def test_lookups_give_the_rows_that_the_orm_gives() -> None:
    _same(selectors.worker_get("PC-1"), Worker.objects.get(pk="pc-1"))
    _same(selectors.worker_named("pc-2"), Worker.objects.get(pk="pc-2"))
    wanted = Binding.objects.filter(mac=MAC, effective=True).order_by("-pk").first()
    _same(selectors.binding_of(MAC), wanted)
    for found, disk in zip(
        selectors.disks_of("pc-1"), Disk.objects.order_by("position"), strict=True
    ):
        _same(found, disk)
    _same(selectors.cd_of("pc-1"), Cd.objects.get())
    find = Compiled(lambda name: Agent.objects.filter(pk=name).order_by("pk")[:1])
    _same(find.first("node-1"), Agent.objects.get())


def test_lookups_of_nothing_find_nothing() -> None:
    assert selectors.worker_named("'; DROP TABLE workers_worker; --") is None
    assert selectors.binding_of("52:54:00:00:00:99") is None
    assert selectors.disks_of("pc-2") == []
    assert Worker.objects.count() == 2


def test_a_lookup_takes_just_one_parameter() -> None:
    with pytest.raises(ValueError, match="one parameter"):
        Compiled(lambda name: Worker.objects.filter(pk=name, hostname="x"))("y")


def test_rows_come_back_as_they_went_in() -> None:
    before = [_fields(row) for row in Disk.objects.order_by("position")]
    disks = list(Disk.objects.order_by("position"))
    with transaction.atomic(), writable():
        delete(Disk, "record", ["pc-1", "pc-9"])
        assert not Disk.objects.exists()
        insert(Disk, disks)
        insert(Disk, [])
    after = [_fields(row) for row in Disk.objects.order_by("position")]
    assert [{**row, "id": 0} for row in after] == [{**row, "id": 0} for row in before]


def test_only_rows_that_are_meant_are_deleted() -> None:
    with writable():
        delete(IndexedRecord, "key", ["pc-1", "node-1"], source="workers")
        delete(IndexedRecord, "key", [], source="workers")
    left = set(IndexedRecord.objects.values_list("source", "key"))
    assert ("agents", "node-1") in left
    assert ("workers", "pc-2") in left
    assert ("workers", "pc-1") not in left


def test_plain_sql_cannot_write_outside_the_writer() -> None:
    with pytest.raises(DatabaseError):
        delete(Worker, "record", ["pc-1"])
