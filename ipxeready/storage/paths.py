"""Where each file of the product lies below IPXE_ROOT."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """Every path that the product reads or writes, from the one root folder."""

    root: Path

    @property
    def config(self) -> Path:
        """Folder of what people configure: agents, users, tokens."""
        return self.root / "config"

    @property
    def state(self) -> Path:
        """Folder of what the product writes down."""
        return self.root / "state"

    @property
    def dnsmasq(self) -> Path:
        """Folder of dnsmasq's configuration and hosts file."""
        return self.root / "dnsmasq"

    @property
    def tftp(self) -> Path:
        """Folder that dnsmasq serves: firmware and scripts."""
        return self.root / "tftp"

    @property
    def public(self) -> Path:
        """Folder behind /files and /file."""
        return self.root / "public"

    @property
    def agents_yml(self) -> Path:
        """Storage nodes."""
        return self.config / "agents.yml"

    @property
    def users_yml(self) -> Path:
        """People."""
        return self.config / "users.yml"

    @property
    def chap_secrets_yml(self) -> Path:
        """Secrets with which workers log in to their targets."""
        return self.config / "chap-secrets.yml"

    @property
    def workers_yml(self) -> Path:
        """Workers and their disks."""
        return self.state / "workers.yml"

    @property
    def settings_json(self) -> Path:
        """Runtime settings."""
        return self.state / "settings.json"

    @property
    def operations(self) -> Path:
        """The audit trail."""
        return self.state / "operations.jsonl"

    @property
    def dhcp_hosts(self) -> Path:
        """MAC -> hostname, read by dnsmasq."""
        return self.dnsmasq / "dhcp-hosts.conf"

    @property
    def cp_token(self) -> Path:
        """The API's bearer token, when none is in the environment."""
        return self.config / "cp-token"

    @property
    def agent_token(self) -> Path:
        """The agent's bearer token, when none is in the environment."""
        return self.config / "agent-token"

    @property
    def secret_key(self) -> Path:
        """Django's secret key."""
        return self.config / "secret-key"

    @property
    def first_login(self) -> Path:
        """The first administrator's password until it is changed."""
        return self.state / "first-login"

    @property
    def lock(self) -> Path:
        """The one lock; its text names the holder."""
        return self.state / ".lock"

    @property
    def intents(self) -> Path:
        """Writes under way: what a crash leaves here is finished by the next writer."""
        return self.state / ".intent"

    @property
    def jobs(self) -> Path:
        """Long work of the control plane: one file a job."""
        return self.state / "jobs"

    @property
    def backup(self) -> Path:
        """The last content that we wrote of each file."""
        return self.state / "backup"

    @property
    def node_jobs(self) -> Path:
        """Long work of a storage node: one file a job."""
        return self.state / "node-jobs"

    @property
    def node_sessions(self) -> Path:
        """Since when who is logged in to a storage node."""
        return self.state / "node-sessions.json"

    @property
    def node_pool(self) -> Path:
        """Which image directory a storage node knows, by its mark."""
        return self.state / "node-pool.json"

    @property
    def login_counters(self) -> Path:
        """Failed logins, counted by all processes."""
        return self.run / "login-counters"

    @property
    def token_use(self) -> Path:
        """When each personal token was last used: the times of empty files."""
        return self.run / "token-use"

    @property
    def run(self) -> Path:
        """Sockets, stamps and pid files of running parts."""
        return self.state / "run"
