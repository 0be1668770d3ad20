"""iSCSI names: one canonical form, the strictest rule, the whole length counted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.protocol.filenames import check_filename, disk_filename
from agents.validators import check_agent_id
from ipxeready.errors import Invalid
from ipxeready.storage import iqn
from workers.validators import check_worker_id

BASE = "iqn.2026-07.com.controller"


@pytest.mark.case(56)
@pytest.mark.parametrize(
    "text",
    [
        "iqn.2026-7.lab",
        "iqn.2026-07.lab",
        "IQN.2026-07.com.controller",
        "iqn.2026-07.com.controller:",
        "iqn.2026-13.com.controller",
        "iqn.2026-00.com.controller",
        "iqn.2026-07.com.Controller",
        "iqn.2026-07.com.contr_oller",
        "iqn.2026-07.com..controller",
        "iqn.2026-07.com.controller.",
        "iqn.2026-07.com.-controller",
        "iqn.2026-07.com.controller\n",
        " iqn.2026-07.com.controller",
        "iqn.2026-07.com.contröller",
        "eui.0123456789abcdef",
        "iqn.2026-07." + ".".join(["a" * 60] * 4),
        "",
    ],
)
def test_a_base_that_some_target_system_refuses_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        iqn.check_base_iqn(text)
    assert caught.value.field == "base_iqn"


@pytest.mark.case(56)
@pytest.mark.parametrize(
    "text", [BASE, "iqn.2026-12.lan.lab.room-3", f"{BASE}:room-3", f"{BASE}:a.b:c"]
)
def test_a_base_that_all_take_is_taken(text: str) -> None:
    assert iqn.check_base_iqn(text) == text


@pytest.mark.case(48)
def test_one_function_makes_the_one_lower_case_name() -> None:
    assert iqn.target_iqn(BASE, "Worker-01", "Windows") == f"{BASE}:worker-01.windows"
    assert iqn.cd_iqn(BASE, "Worker-01") == f"{BASE}:worker-01.windows.iso"
    assert iqn.initiator_iqn(BASE, "Worker-01") == f"{BASE}:worker-01"
    assert iqn.image_name("Worker-01", "ESXi") == "worker-01.esxi.img"


@pytest.mark.case(52)
def test_the_final_string_is_counted() -> None:
    base = "iqn.2026-07." + ".".join(["a" * 49] * 3)
    longest = 223 - len(base) - len(":.windows")
    hostname = "h" * longest
    assert len(iqn.target_iqn(base, hostname, "windows")) == 223
    with pytest.raises(Invalid, match="223"):
        iqn.target_iqn(base, hostname + "h", "windows")
    with pytest.raises(Invalid, match="224 bytes"):
        iqn.check_iqn(f"{base}:{hostname}h.windows")


@pytest.mark.parametrize(
    "hostname",
    ["", "worker_01", "a.b", "-a", "a-", "a b", "a" * 64, "机房", "a\n", "a,b"],
)
def test_a_hostname_that_no_name_can_carry_is_refused(hostname: str) -> None:
    for make in (iqn.target_iqn, lambda base, host, _: iqn.cd_iqn(base, host)):
        with pytest.raises(Invalid) as caught:
            make(BASE, hostname, "windows")
        assert caught.value.field == "hostname"


def test_an_os_that_we_do_not_know_is_refused() -> None:
    with pytest.raises(Invalid, match="windows, ubuntu"):
        iqn.target_iqn(BASE, "worker-01", "beos")


def test_a_target_is_taken_apart_below_its_base_only() -> None:
    disk = iqn.split_target(f"{BASE}:Worker-01.Windows", BASE)
    assert (disk.name, disk.hostname, disk.os, disk.cd) == (
        "worker-01.windows",
        "worker-01",
        "windows",
        False,
    )
    cd = iqn.split_target(f"{BASE}:worker-01.windows.iso", BASE)
    assert (cd.hostname, cd.os, cd.cd) == ("worker-01", None, True)
    for other in (
        f"{BASE}x:a",
        f"{BASE}:a:b",
        BASE,
        "iqn.2020-01.org.other:a",
        f"{BASE}:",
    ):
        with pytest.raises(Invalid):
            iqn.split_target(other, BASE)


@pytest.mark.case(70)
@pytest.mark.parametrize(
    ("name", "master"),
    [
        ("win_tpl_v1.img", True),
        ("WIN_TPL_v1.img", True),
        ("win_tpl_v1.IMG", True),
        ("worker_tpl_01.Windows.img", True),
        ("a_tpl_b_tpl_c.img", True),
        ("_tpl_a.img", True),
        ("a_tpl_.img", True),
        ("_tpl_.img", False),
        ("x_tpl_y.iso", False),
        ("tpl.img", False),
        ("a_tpl.img", False),
        ("x_tpl_y.img.bak", False),
        (".x_tpl_y.img", False),
        ("a.img_tpl_", False),
    ],
)
def test_what_a_master_is(name: str, master: bool) -> None:
    assert iqn.is_master(name) is master


@pytest.mark.case(70)
@given(
    st.from_regex(r"[a-z0-9][a-z0-9-]{0,30}", fullmatch=True), st.sampled_from(iqn.OSES)
)
def test_no_workers_image_has_a_masters_name_and_each_comes_back_from_its_name(
    hostname: str, os: str
) -> None:
    try:
        target = iqn.target_iqn(BASE, hostname, os)
    except Invalid:
        return
    name = iqn.image_name(hostname, os)
    assert not iqn.is_master(name)
    assert disk_filename(target, BASE) == name
    assert iqn.join(BASE, name.removesuffix(".img")) == target
    assert target == target.lower()


@given(st.text(max_size=40))
def test_no_text_gets_through_as_a_file_name_that_leads_elsewhere(text: str) -> None:
    try:
        name = check_filename(text, suffix=".img", field="x")
    except Invalid:
        return
    assert "/" not in name
    assert "\0" not in name
    assert "," not in name
    assert not name.startswith(".")


@pytest.mark.parametrize("check", [iqn.check_name, check_worker_id, check_agent_id])
def test_a_letter_that_only_lower_case_makes_ascii_is_refused(check: Any) -> None:
    assert check("PC-K1") == "pc-k1"
    with pytest.raises(Invalid):
        check("pc-\N{KELVIN SIGN}1")


def test_a_target_name_with_such_a_letter_is_refused() -> None:
    with pytest.raises(Invalid):
        iqn.check_iqn("iqn.2026-07.lab.test:\N{KELVIN SIGN}1.ubuntu")
