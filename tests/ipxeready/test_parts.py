"""The verbose health page: what is wrong, file by file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rest_framework.test import APIClient

from ipxeready.conf import Reload
from ipxeready.storage.paths import Layout


def test_files_that_are_well_are_listed(api: APIClient, layout: Layout) -> None:
    body = api.get("/healthz?verbose=1").json()
    paths = {file["path"]: file["ok"] for file in body["files"]}
    assert paths[str(layout.users_yml)] is True
    assert all(paths.values())
    assert body["dnsmasq"] == {"reload": "none", "value": None}
    assert body["nodes"] == []


def test_a_broken_file_is_named_with_its_line(api: APIClient, layout: Layout) -> None:
    layout.workers_yml.write_text("workers:\n  a: [\n")
    body = api.get("/healthz?verbose=1").json()
    assert body["status"] == "ok"
    broken = [file for file in body["files"] if not file["ok"]]
    assert [file["path"] for file in broken] == [str(layout.workers_yml)]
    assert broken[0]["line"]


def test_a_broken_record_is_a_problem_of_its_file(
    api: APIClient, layout: Layout
) -> None:
    layout.users_yml.write_text("users:\n  eve:\n    role: king\n")
    files = api.get("/healthz?verbose=1").json()["files"]
    problems = next(f["problems"] for f in files if f["name"] == "users")
    assert len(problems) == 1
    assert "role of eve" in problems[0]


def test_a_dnsmasq_that_is_not_there_is_said(
    api: APIClient, layout: Layout, settings: Any
) -> None:
    pidfile = layout.run / "dnsmasq.pid"
    way = Reload("pidfile", str(pidfile))
    settings.IPXE = replace(settings.IPXE, dnsmasq_reload_set=way)
    body = api.get("/healthz?verbose=1").json()
    assert body["dnsmasq"]["running"] is False
    assert "no pid file" in body["dnsmasq"]["error"]
