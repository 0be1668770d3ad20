"""The environment: defaults as in the contract, and one line for each wrong value."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipxeready import conf
from ipxeready.conf import ConfigError, Endpoint, Reload


def test_nothing_set_gives_the_contracts_defaults() -> None:
    config = conf.load({})
    assert config.mode == "control"
    assert config.root == conf.REPOSITORY
    assert (config.cp_bind, config.agent_bind) == (
        ("0.0.0.0", 4839),
        ("0.0.0.0", 4840),
    )
    assert (config.cp_token, config.agent_token) == ("", "")
    assert config.auto_register is True
    assert config.auto_register_max == 2000
    assert (config.auto_boot_timeout, config.boot_menu_timeout) == (1000, 5000)
    assert config.agent_timeout == 10
    assert config.disk_dir == conf.REPOSITORY / "images"
    assert config.iqn_base == "iqn.2026-07.com.controller"
    assert config.agent_backend == "auto"
    assert (config.stgt_control_port, config.stgt_socket) == (0, None)
    assert config.iscsi_portal == ("0.0.0.0", 3260)
    assert config.log_file == conf.REPOSITORY / "state" / "agent-ops.jsonl"
    assert (config.serve_workers, config.serve_threads) == (2, 8)
    assert config.tls is False


def test_an_agent_is_one_process_with_sixteen_threads() -> None:
    config = conf.load({"IPXE_MODE": "agent"})
    assert (config.serve_workers, config.serve_threads) == (1, 16)
    with pytest.raises(ConfigError, match="IPXE_SERVE_WORKERS"):
        conf.load({"IPXE_MODE": "agent", "IPXE_SERVE_WORKERS": "2"})


def test_empty_and_blank_values_count_as_not_set() -> None:
    assert conf.load(dict.fromkeys(conf.VARIABLES, "  ")) == conf.load({})


def test_the_root_moves_what_lies_below_it() -> None:
    config = conf.load({"IPXE_ROOT": "/srv/boot"})
    assert config.disk_dir == Path("/srv/boot/images")
    assert config.log_file == Path("/srv/boot/state/agent-ops.jsonl")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("IPXE_MODE", "both"),
        ("IPXE_CP_BIND", "4839"),
        ("IPXE_CP_BIND", "0.0.0.0:0"),
        ("IPXE_CP_BIND", "0.0.0.0:65536"),
        ("IPXE_CP_BIND", "::1:4839"),
        ("IPXE_CP_BIND", "0.0.0.0:4839\n"[:-1] + " 1"),
        ("IPXE_AGENT_BIND", "node.example:4840"),
        ("IPXE_AGENT_BIND", "1.2.3.999:4840"),
        ("IPXE_ISCSI_PORTAL", "0.0.0.0"),
        ("IPXE_CP_TOKEN", "two words"),
        ("IPXE_CP_TOKEN", "löffel"),
        ("IPXE_AGENT_TOKEN", "a\tb"),
        ("IPXE_CP_AUTO_REGISTER", "maybe"),
        ("IPXE_CP_AUTO_REGISTER", "yes"),
        ("IPXE_CP_AUTO_REGISTER_MAX", "-1"),
        ("IPXE_CP_AUTO_BOOT_TIMEOUT", "1.5"),
        ("IPXE_CP_AUTO_BOOT_TIMEOUT", "٣"),
        ("IPXE_CP_BOOT_MENU_TIMEOUT", "5s"),
        ("IPXE_CP_BOOT_MENU_TIMEOUT", "86400001"),
        ("IPXE_CP_DNSMASQ_RELOAD", "pidfile:"),
        ("IPXE_CP_DNSMASQ_RELOAD", "pidfile:run/dnsmasq.pid"),
        ("IPXE_CP_DNSMASQ_RELOAD", "command: "),
        ("IPXE_CP_DNSMASQ_RELOAD", "none:"),
        ("IPXE_CP_DNSMASQ_RELOAD", "signal"),
        ("IPXE_CP_AGENT_TIMEOUT", "0"),
        ("IPXE_CP_AGENT_TIMEOUT", "nan"),
        ("IPXE_CP_AGENT_TIMEOUT", "inf"),
        ("IPXE_CP_AGENT_TIMEOUT", "601"),
        ("IPXE_IQN_BASE", "not-an-iqn"),
        ("IPXE_IQN_BASE", "iqn.2026-07.com.controller:"),
        ("IPXE_AGENT_BACKEND", "zfs"),
        ("IPXE_STGT_CONTROL_PORT", "x"),
        ("IPXE_STGT_CONTROL_PORT", "32768"),
        ("IPXE_STGT_SOCKET", "run/tgtd"),
        ("IPXE_STGT_SOCKET", "/" + "x" * 100),
        ("IPXE_SERVE_WORKERS", "0"),
        ("IPXE_SERVE_THREADS", "1000"),
        ("IPXE_TLS", "on"),
    ],
)
def test_a_wrong_value_is_named_with_its_rule_in_one_line(
    variable: str, value: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        conf.load({variable: value})
    line = str(caught.value)
    assert line.startswith(f"{variable}=")
    assert "\n" not in line
    assert caught.value.rule
    if "TOKEN" in variable:
        assert value not in line


@pytest.mark.parametrize(
    ("text", "endpoint", "shown"),
    [
        ("127.0.0.1:80", Endpoint("127.0.0.1", 80), "127.0.0.1:80"),
        ("[::]:4839", Endpoint("::", 4839), "[::]:4839"),
        ("localhost:1", Endpoint("127.0.0.1", 1), "127.0.0.1:1"),
    ],
)
def test_addresses_of_both_families_are_taken(
    text: str, endpoint: Endpoint, shown: str
) -> None:
    config = conf.load({"IPXE_CP_BIND": text})
    assert config.cp_bind == config.bind == endpoint
    assert str(endpoint) == shown


@pytest.mark.parametrize(
    ("text", "reload"),
    [
        ("none", Reload("none", "")),
        ("pidfile:/run/x.pid", Reload("pidfile", "/run/x.pid")),
        (
            "command:systemctl reload dnsmasq",
            Reload("command", "systemctl reload dnsmasq"),
        ),
    ],
)
def test_the_ways_to_reload_dnsmasq(text: str, reload: Reload) -> None:
    assert conf.load({"IPXE_CP_DNSMASQ_RELOAD": text}).dnsmasq_reload == reload


def test_without_a_set_way_the_pid_file_is_looked_for_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pidfile = tmp_path / "dnsmasq.pid"
    monkeypatch.setattr(conf, "DNSMASQ_PIDFILE", pidfile)
    config = conf.load({})
    assert config.dnsmasq_reload == Reload("none", "")
    pidfile.write_text("1\n")
    assert config.dnsmasq_reload == Reload("pidfile", str(pidfile))


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    config = conf.load({"IPXE_CP_TOKEN_FILE": str(file)})
    assert config.cp_token == "s3cret"
    assert "s3cret" not in repr(config)


def test_a_secret_file_that_is_missing_empty_or_doubled_stops_the_start(
    tmp_path: Path,
) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for environ in (
        {"IPXE_CP_TOKEN_FILE": str(tmp_path / "missing")},
        {"IPXE_CP_TOKEN_FILE": str(tmp_path)},
        {"IPXE_CP_TOKEN_FILE": str(empty)},
        {"IPXE_CP_TOKEN_FILE": str(empty), "IPXE_CP_TOKEN": "x"},
    ):
        with pytest.raises(ConfigError, match="^IPXE_CP_TOKEN_FILE="):
            conf.load(environ)
