"""First start: what is missing is made, what is in the way is named in one line."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from ipxeready import conf, startup
from ipxeready.startup import StartError
from ipxeready.storage.paths import Layout


def prepared(root: Path, environ: Mapping[str, str] | None = None) -> Layout:
    config = conf.load({"IPXE_ROOT": str(root), **(environ or {})})
    layout = Layout(root)
    startup.prepare(config, layout)
    return layout


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_empty_folder_becomes_a_root(tmp_path: Path) -> None:
    layout = prepared(tmp_path / "not" / "there")
    for secret in (layout.cp_token, layout.agent_token, layout.secret_key):
        assert mode(secret) == 0o600
        assert len(secret.read_text().strip()) >= 43  # 256 bits in base64
    assert mode(layout.agents_yml) == mode(layout.users_yml) == 0o600
    assert mode(layout.chap_secrets_yml) == 0o600
    assert yaml.safe_load(layout.chap_secrets_yml.read_text()) == {"secrets": {}}
    assert yaml.safe_load(layout.agents_yml.read_text()) == {"agents": {}}
    assert yaml.safe_load(layout.users_yml.read_text()) == {"users": {}}
    assert yaml.safe_load(layout.workers_yml.read_text()) == {"workers": {}}
    assert layout.settings_json.read_text() == "{}\n"
    assert layout.operations.read_bytes() == b""
    # The shipped example may explain itself, but must bind nobody.
    assert all(
        line.startswith("#") for line in layout.dhcp_hosts.read_text().splitlines()
    )
    assert layout.public.is_dir()
    assert layout.tftp.is_dir()
    assert mode(layout.run) == 0o700


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    layout = prepared(tmp_path)
    layout.workers_yml.write_text("# mine\n")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    prepared(tmp_path)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_two_roots_have_different_secrets(tmp_path: Path) -> None:
    one, two = prepared(tmp_path / "1"), prepared(tmp_path / "2")
    assert one.cp_token.read_text() != two.cp_token.read_text()
    assert one.cp_token.read_text() != one.agent_token.read_text()


def test_tokens_of_the_environment_need_no_files(tmp_path: Path) -> None:
    layout = prepared(tmp_path, {"IPXE_CP_TOKEN": "a", "IPXE_AGENT_TOKEN": "b"})
    assert not layout.cp_token.exists()
    assert not layout.agent_token.exists()
    assert layout.secret_key.exists()


def test_a_template_in_the_root_is_preferred(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "agents.yml.example").write_text("# ours\nagents: {}\n")
    assert prepared(tmp_path).agents_yml.read_text().startswith("# ours\n")


def test_an_agent_makes_only_its_own_things(tmp_path: Path) -> None:
    layout = prepared(tmp_path, {"IPXE_MODE": "agent"})
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")}
    assert found == {
        "config",
        "config/agent-token",
        "images",
        "state",
        "state/agent-ops.jsonl",
    }
    assert mode(layout.agent_token) == 0o600


def test_the_terminal_is_told_where_a_secret_is_never_what_it_is(
    tmp_path: Path,
) -> None:
    layout = prepared(tmp_path)
    config = conf.load({"IPXE_ROOT": str(tmp_path)})
    assert startup.notes(config, layout) == [f"token: cat {layout.cp_token}"]
    layout.first_login.write_text("secret")
    line = startup.notes(config, layout)[1]
    assert line == f"first login: admin, password: cat {layout.first_login}"
    own = conf.load({"IPXE_ROOT": str(tmp_path), "IPXE_CP_TOKEN": "abc"})
    assert "token" not in startup.notes(own, layout)[0]


@pytest.mark.parametrize("name", ["config", "state", "dnsmasq", "tftp", "public"])
def test_a_file_where_a_folder_should_be_stops_the_start(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(StartError) as caught:
        prepared(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / name} must be a folder")


def test_a_root_below_a_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match=f"{tmp_path}/file must be a folder"):
        prepared(tmp_path / "file" / "root")


@pytest.mark.parametrize(
    "name",
    [
        "config/agents.yml",
        "config/users.yml",
        "config/chap-secrets.yml",
        "config/cp-token",
        "config/secret-key",
        "state/workers.yml",
        "state/settings.json",
        "state/operations.jsonl",
        "dnsmasq/dhcp-hosts.conf",
    ],
)
def test_a_folder_where_a_file_should_be_stops_the_start(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir(parents=True)
    with pytest.raises(StartError) as caught:
        prepared(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / name} must be a file")


def test_an_image_directory_that_is_a_file_stops_an_agent(tmp_path: Path) -> None:
    (tmp_path / "disk").write_text("")
    with pytest.raises(StartError, match="disk must be a folder"):
        prepared(
            tmp_path, {"IPXE_MODE": "agent", "IPXE_DISK_DIR": str(tmp_path / "disk")}
        )


def test_a_link_to_nowhere_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "agents.yml").symlink_to(tmp_path / "elsewhere.yml")
    with pytest.raises(StartError, match="is a link to"):
        prepared(tmp_path)


def test_an_empty_secret_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "cp-token").write_text("\n")
    with pytest.raises(StartError, match="cp-token must hold one word"):
        prepared(tmp_path)


def test_a_step_of_the_start_is_added_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "AT_START", [])

    def step() -> None:
        """Do nothing."""

    startup.at_start(step)
    startup.at_start(step)
    assert list(startup.AT_START) == [step]
