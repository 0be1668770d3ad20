"""POST /workers: identity only, and everything that it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.workers.helpers import (
    M1,
    M2,
    M3,
    ledger,
    live_hosts,
    refusal,
    snapshot,
    trail,
)

Make = Callable[..., dict[str, Any]]


def test_a_worker_is_registered_with_its_binding(
    api: APIClient, layout: Layout
) -> None:
    answer = api.post("/workers", {"worker_id": "PC-01", "mac": "00-0C-29-B9-8B-2D"})
    assert answer.status_code == 201
    assert answer.json() == {
        "worker_id": "pc-01",
        "mac": "00:0c:29:b9:8b:2d",
        "hostname": "pc-01",
        "arch": "x86_64",
        "state": "registered",
        "disks": [],
        "cd": None,
    }
    assert ledger(layout)["pc-01"] == {
        "hostname": "pc-01",
        "arch": "x86_64",
        "state": "registered",
        "disks": [],
        "cd": None,
    }
    assert live_hosts(layout) == ["00:0c:29:b9:8b:2d,pc-01"]
    (line,) = trail(layout, "create_worker")
    assert line["status"] == "ok"
    assert (line["worker_id"], line["hostname"]) == ("pc-01", "pc-01")
    assert (line["mac"], line["client"]) == ("00:0c:29:b9:8b:2d", "127.0.0.1")


def test_all_fields_count(api: APIClient, layout: Layout) -> None:
    body = {
        "worker_id": "rack.1_a",
        "mac": M1,
        "hostname": "Seat-07",
        "arch": "ARM64",
        "boot": {"menu_default": "Shell", "menu_timeout": 0},
    }
    record = api.post("/workers", body).json()
    assert record["hostname"] == "seat-07"
    assert record["arch"] == "arm64"
    assert record["boot"] == {"menu_default": "shell", "menu_timeout": 0}
    assert live_hosts(layout) == [f"{M1},seat-07"]


@pytest.mark.parametrize("path", ["/workers/", "/api/cp/workers", "/api/cp/workers/"])
def test_every_spelling_of_the_path_works(api: APIClient, path: str) -> None:
    assert api.post(path, {"worker_id": "pc1", "mac": M1}).status_code == 201
    assert api.get(path).json()[0]["worker_id"] == "pc1"


def test_a_form_works_too(api: APIClient, layout: Layout) -> None:
    form = {
        "worker_id": "pc1",
        "mac": M1,
        "boot.menu_default": "shell",
        "boot.menu_timeout": "3000",
        "csrfmiddlewaretoken": "x",
    }
    answer = api.post("/workers", form, format="multipart")
    assert answer.status_code == 201, answer.json()
    assert ledger(layout)["pc1"]["boot"] == {
        "menu_default": "shell",
        "menu_timeout": 3000,
    }
    answer = api.post(
        "/workers", {**form, "boot.menu_defualt": "x"}, format="multipart"
    )
    assert answer.status_code == 400
    assert "menu_defualt" in json.dumps(answer.json())


@pytest.mark.parametrize(
    ("change", "field", "rule"),
    [
        ({"worker_id": None}, "worker_id", "must be text"),
        ({"worker_id": 7}, "worker_id", "7 must be text"),
        ({"worker_id": ["a"]}, "worker_id", "must be text"),
        ({"worker_id": {"a": 1}}, "worker_id", "must be text"),
        ({"worker_id": ""}, "worker_id", "must not be empty"),
        ({"worker_id": "-a"}, "worker_id", "'-a' must be 1 to 63"),
        ({"worker_id": "a/b"}, "worker_id", "'a/b' must be 1 to 63"),
        ({"worker_id": "../../etc"}, "worker_id", "must be 1 to 63"),
        ({"worker_id": "a" * 64}, "worker_id", "must be 1 to 63"),
        ({"worker_id": "a" * 500_000}, "worker_id", "must be 1 to 63"),
        ({"worker_id": "a\0b"}, "worker_id", "ull"),
        ({"worker_id": "机房"}, "worker_id", "must be 1 to 63"),
        ({"worker_id": "a_b"}, "hostname", "cannot be a hostname; give one"),
        ({"worker_id": "101"}, "hostname", "cannot be a hostname; give one"),
        ({"mac": None}, "mac", "must be text"),
        ({"mac": 41135085296}, "mac", "must be text"),
        ({"mac": ""}, "mac", "must not be empty"),
        ({"mac": "52:54:00:00:00"}, "mac", "has 5 bytes"),
        ({"mac": "undefined"}, "mac", "'undefined' is not a MAC address"),
        ({"mac": "${mac}"}, "mac", "is not a MAC address"),
        ({"mac": "0" * 100_000}, "mac", "is not a MAC address"),
        ({"hostname": 12}, "hostname", "12 must be text"),
        ({"arch": "x 86"}, "arch", "'x 86' must be 1 to 32"),
        ({"arch": 64}, "arch", "must be text"),
        ({"boot": "shell"}, "boot", ""),
        ({"boot": {"menu_default": "x"}}, "menu_default", "'x' must be one of windows"),
        ({"boot": {"menu_timeout": -1}}, "menu_timeout", "-1 must be whole milli"),
        ({"boot": {"menu_timeout": 1.5}}, "menu_timeout", "1.5 must be whole milli"),
        ({"boot": {"menu_timeout": True}}, "menu_timeout", "must be whole milli"),
        ({"boot": {"menu_timeout": [1]}}, "menu_timeout", "must be whole milli"),
        ({"boot": {"menu_timeout": 10**40}}, "menu_timeout", "must be whole milli"),
        ({"boot": {"menu_defualt": "x"}}, "menu_defualt", "unknown field; known are"),
        ({"iso": "x.iso"}, "iso", "unknown field; known are"),
        ({"state": "ready"}, "state", "unknown field; known are"),
        ({"": 1}, "", "unknown field; known are"),
    ],
)
def test_what_is_malformed_is_refused_by_field_value_and_rule(
    api: APIClient, layout: Layout, change: dict[str, Any], field: str, rule: str
) -> None:
    before = snapshot(layout)
    body = {"worker_id": "pc1", "mac": M1, **change}
    status, words = refusal(api, "post", "/workers", body)
    assert status == 400, words
    assert field in words
    assert rule in words
    assert len(words) < 500
    assert snapshot(layout) == before


@pytest.mark.parametrize("missing", ["worker_id", "mac"])
def test_what_is_missing_is_named(api: APIClient, missing: str) -> None:
    body = {"worker_id": "pc1", "mac": M1}
    del body[missing]
    assert refusal(api, "post", "/workers", body) == (400, f"{missing}: is needed")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"x"', b"null", b"\xff\xfe", b'{"worker_id": "\xff"}']
)
def test_a_body_that_is_no_object_is_refused(api: APIClient, body: bytes) -> None:
    answer = api.generic("POST", "/workers", body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["detail"]


def test_half_a_surrogate_is_refused(api: APIClient) -> None:
    body = b'{"worker_id": "a\\ud800", "mac": "52:54:00:00:00:01"}'
    answer = api.generic("POST", "/workers", body, content_type="application/json")
    assert answer.status_code == 400


@pytest.mark.case(2)
@pytest.mark.parametrize("name", ["101", "12h", "3d", "7W", "45s", "2M"])
def test_a_lease_time_is_no_hostname(api: APIClient, layout: Layout, name: str) -> None:
    before = snapshot(layout)
    body = {"worker_id": "pc1", "mac": M1, "hostname": name}
    status, words = refusal(api, "post", "/workers", body)
    assert status == 400
    assert "hostname" in words and name in words and "lease time" in words
    assert snapshot(layout) == before


@pytest.mark.case(2)
@pytest.mark.parametrize("name", ["pc101", "1a", "0x10"])
def test_names_that_only_look_like_numbers_are_taken(api: APIClient, name: str) -> None:
    body = {"worker_id": "pc1", "mac": M1, "hostname": name}
    assert api.post("/workers", body).json()["hostname"] == name


@pytest.mark.case(4)
@pytest.mark.parametrize("name", ["ignore", "Ignore", "infinite", "INFINITE"])
def test_keywords_of_dnsmasq_are_no_hostnames(api: APIClient, name: str) -> None:
    body = {"worker_id": "pc1", "mac": M1, "hostname": name}
    status, words = refusal(api, "post", "/workers", body)
    assert status == 400
    assert "meaning to dnsmasq" in words


@pytest.mark.case(49)
@pytest.mark.case(53)
@pytest.mark.case(55)
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("worker_01", "underscore"),
        ("a" * 64, "at most 63"),
        ("worker-01.lab.lan", "dot"),
        ("10.0.0.7", "dot"),
        ("worker-01.", "dot"),
        ("-a", "hyphen"),
        ("a-", "hyphen"),
        ("机房01", "ASCII"),
        ("a b", "characters"),
        ("a,b", "characters"),
        ("a\nb", "characters"),
    ],
)
def test_other_names_that_are_no_hostnames(
    api: APIClient, layout: Layout, name: str, rule: str
) -> None:
    before = snapshot(layout)
    body = {"worker_id": "pc1", "mac": M1, "hostname": name}
    status, words = refusal(api, "post", "/workers", body)
    assert (status, rule in words) == (400, True), words
    assert snapshot(layout) == before


@pytest.mark.case(52)
def test_a_name_that_makes_an_iqn_too_long_is_refused(
    api: APIClient, layout: Layout, settings: Any
) -> None:
    import dataclasses

    base = "iqn.2026-07.com." + ".".join(["controller"] * 14)
    settings.IPXE = dataclasses.replace(settings.IPXE, iqn_base=base)
    before = snapshot(layout)
    room = 223 - len(base) - len(":.windows.iso")
    assert 0 < room < 63
    body = {"worker_id": "w", "mac": M1, "hostname": "a" * (room + 1)}
    status, words = refusal(api, "post", "/workers", body)
    assert status == 400
    assert "223" in words
    assert snapshot(layout) == before
    body["hostname"] = "a" * room
    assert api.post("/workers", body).status_code == 201


@pytest.mark.case(20)
@pytest.mark.parametrize(
    "mac",
    [
        "00:00:00:00:00:00",
        "ff:ff:ff:ff:ff:ff",
        "01:00:5e:00:00:01",
        "ff:00:00:00:00:01",
    ],
)
def test_addresses_that_no_card_owns_are_not_bound(
    api: APIClient, layout: Layout, mac: str
) -> None:
    before = snapshot(layout)
    status, words = refusal(api, "post", "/workers", {"worker_id": "a", "mac": mac})
    assert status == 400
    assert mac in words
    assert snapshot(layout) == before


@pytest.mark.case(21)
@pytest.mark.parametrize("length", [8, 20])
def test_long_addresses_are_not_cut(
    api: APIClient, layout: Layout, length: int
) -> None:
    before = snapshot(layout)
    mac = ":".join(["52"] * length)
    status, words = refusal(api, "post", "/workers", {"worker_id": "a", "mac": mac})
    assert status == 400
    assert "only 6-byte addresses" in words
    assert snapshot(layout) == before


def test_taken_ids_names_and_addresses_are_conflicts(
    api: APIClient, layout: Layout, worker: Make
) -> None:
    worker("pc1", mac=M1, hostname="seat-1")
    before = snapshot(layout)
    for body, words in (
        ({"worker_id": "PC1", "mac": M2}, "there is a worker pc1 already"),
        ({"worker_id": "x", "mac": M2, "hostname": "Seat-1"}, "belongs to worker pc1"),
        ({"worker_id": "x", "mac": M1.upper()}, "is bound to seat-1"),
    ):
        status, said = refusal(api, "post", "/workers", body)
        assert (status, words in said) == (409, True), said
    assert snapshot(layout) == before


@pytest.mark.case(1)
@pytest.mark.parametrize("name", ["worker-01", "WORKER-01"])
def test_a_name_that_a_line_holds_is_a_conflict_that_names_the_holder(
    api: APIClient, layout: Layout, name: str
) -> None:
    layout.dhcp_hosts.write_text(f"{M1},worker-01\n")
    before = snapshot(layout)
    body = {"worker_id": "x", "mac": M2, "hostname": name}
    status, words = refusal(api, "post", "/workers", body)
    assert status == 409
    assert M1 in words
    assert snapshot(layout) == before


def test_a_binding_made_by_hand_is_adopted_untouched(
    api: APIClient, layout: Layout
) -> None:
    layout.dhcp_hosts.write_text(f"{M1} , worker-01 , 127.0.1.77 # mine\n")
    before = snapshot(layout)[layout.dhcp_hosts.name]
    answer = api.post("/workers", {"worker_id": "worker-01", "mac": M1})
    assert answer.status_code == 201
    assert snapshot(layout)[layout.dhcp_hosts.name] == before


@pytest.mark.case(3)
@pytest.mark.parametrize("last", [b"52:54:00:00:00:01,worker-01", b"# a comment"])
def test_a_last_line_without_its_end_is_ended(
    api: APIClient, layout: Layout, last: bytes
) -> None:
    layout.dhcp_hosts.write_bytes(last)
    inode = layout.dhcp_hosts.stat().st_ino
    api.post("/workers", {"worker_id": "worker-02", "mac": M2})
    assert layout.dhcp_hosts.read_bytes() == last + b"\n52:54:00:00:00:02,worker-02\n"
    assert layout.dhcp_hosts.stat().st_ino == inode


@pytest.mark.case(6)
def test_commented_lines_stay_and_a_live_one_is_added(
    api: APIClient, layout: Layout
) -> None:
    text = (
        f"{M1},worker-01 #rack 3\n\n{M2},worker-02#rack3\n   # {M3},worker-03\n"
        "#52:54:00:00:00:04,worker-04\n"
    )
    layout.dhcp_hosts.write_text(text)
    answer = api.post("/workers", {"worker_id": "x", "mac": "52:54:00:00:00:04"})
    assert answer.status_code == 201
    assert layout.dhcp_hosts.read_text() == text + "52:54:00:00:00:04,x\n"


@pytest.mark.case(10)
def test_a_mac_on_two_lines_ends_on_one_and_the_other_is_told(
    api: APIClient, layout: Layout
) -> None:
    layout.dhcp_hosts.write_text("52:54:00:aa:bb:01,first\n52:54:00:AA:BB:01,second\n")
    body = {"worker_id": "second", "mac": "52:54:00:aa:bb:01"}
    record = api.post("/workers", body).json()
    assert record["removed_lines"] == ["52:54:00:aa:bb:01,first"]
    assert layout.dhcp_hosts.read_text() == "52:54:00:AA:BB:01,second\n"
    (line,) = trail(layout, "create_worker")
    assert line["removed_lines"] == ["52:54:00:aa:bb:01,first"]


@pytest.mark.case(13)
def test_bytes_that_are_no_text_survive_and_line_ends_are_the_files_own(
    api: APIClient, layout: Layout
) -> None:
    text = b"# caf\xe9\r\n52:54:00:00:00:01,worker-01\r\n"
    layout.dhcp_hosts.write_bytes(text)
    assert api.post("/workers", {"worker_id": "b", "mac": M2}).status_code == 201
    assert layout.dhcp_hosts.read_bytes() == text + b"52:54:00:00:00:02,b\r\n"


def test_a_broken_ledger_takes_no_worker(api: APIClient, layout: Layout) -> None:
    layout.workers_yml.write_text('workers:\n  a: {hostname: "a\n')
    before = snapshot(layout)
    status, words = refusal(api, "post", "/workers", {"worker_id": "b", "mac": M1})
    assert status == 503
    assert "workers.yml" in words and "line" in words
    assert snapshot(layout) == before


def test_a_record_that_does_not_validate_is_not_overwritten(
    api: APIClient, layout: Layout
) -> None:
    layout.workers_yml.write_text("workers:\n  a:\n    hostname: a_b\n")
    before = snapshot(layout)
    status, words = refusal(api, "post", "/workers", {"worker_id": "a", "mac": M1})
    assert status == 503
    assert "mend this record" in words
    assert snapshot(layout) == before


def test_who_may(
    stranger: APIClient, as_viewer: APIClient, as_operator: APIClient
) -> None:
    body = {"worker_id": "a", "mac": M1}
    assert stranger.post("/workers", body).status_code == 401
    wrong = APIClient(HTTP_AUTHORIZATION="Bearer nonsense")
    assert wrong.post("/workers", body, format="json").status_code == 401
    assert as_viewer.post("/workers", body).status_code == 403
    assert as_operator.post("/workers", body).status_code == 201


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_other_methods_are_refused(api: APIClient, method: str) -> None:
    assert getattr(api, method)("/workers").status_code == 405
