"""The environment, read once and checked: a wrong value stops the start with one line."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ipxeready.errors import ApplicationError
from ipxeready.storage.iqn import check_base_iqn

CONTROL: Final = "control"
AGENT: Final = "agent"
MODES: Final = (CONTROL, AGENT)
BACKENDS: Final = ("stgt", "lio", "files", "auto")
REFLINK: Final = ("auto", "never")
REPOSITORY: Final = Path(__file__).resolve().parent.parent
DNSMASQ_PIDFILE: Final = Path("/run/dnsmasq.pid")
#: Where Debian's dnsmasq keeps its leases.
DNSMASQ_LEASES: Final = Path("/var/lib/misc/dnsmasq.leases")

#: A unix socket's address has room for 107 bytes, and tgtd adds its control port.
SOCKET_MAX: Final = 100

#: tgtadm takes no more for -C.
STGT_PORT_MAX: Final = 32767

#: Every variable and its default as text; the documentation and a test compare with it.
VARIABLES: Final[Mapping[str, str]] = {
    "IPXE_MODE": "control",
    "IPXE_ROOT": "the repository",
    "IPXE_CP_BIND": "0.0.0.0:4839",
    "IPXE_AGENT_BIND": "0.0.0.0:4840",
    "IPXE_CP_TOKEN": "",
    "IPXE_AGENT_TOKEN": "",
    "IPXE_CP_AUTO_REGISTER": "true",
    "IPXE_CP_AUTO_REGISTER_MAX": "2000",
    "IPXE_CP_AUTO_BOOT_TIMEOUT": "1000",
    "IPXE_CP_BOOT_MENU_TIMEOUT": "5000",
    "IPXE_CP_DNSMASQ_RELOAD": "pidfile:/run/dnsmasq.pid where that file is, else none",
    "IPXE_CP_DNSMASQ_LEASES": "/var/lib/misc/dnsmasq.leases",
    "IPXE_CP_AGENT_TIMEOUT": "10",
    "IPXE_DISK_DIR": "IPXE_ROOT/images",
    "IPXE_IQN_BASE": "iqn.2026-07.com.controller",
    "IPXE_AGENT_BACKEND": "auto",
    "IPXE_AGENT_REFLINK": "auto",
    "IPXE_STGT_CONTROL_PORT": "0",
    "IPXE_STGT_SOCKET": "",
    "IPXE_ISCSI_PORTAL": "0.0.0.0:3260",
    "IPXE_LIO_WRITE_BACK": "false",
    "IPXE_LOG_FILE": "IPXE_ROOT/state/agent-ops.jsonl",
    "IPXE_SERVE_WORKERS": "2 (agent: 1)",
    "IPXE_SERVE_THREADS": "8 (agent: 16)",
    "IPXE_TLS": "false",
}


class ConfigError(Exception):
    """A variable whose value breaks its rule; `str()` is the one line for the terminal."""

    def __init__(self, variable: str, value: str, rule: str) -> None:
        super().__init__(f"{variable}={value!r}: {rule}")
        self.variable = variable
        self.value = value
        self.rule = rule


class Endpoint(NamedTuple):
    """An address and a port to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        return (
            f"[{self.host}]:{self.port}"
            if ":" in self.host
            else f"{self.host}:{self.port}"
        )


class Reload(NamedTuple):
    """How dnsmasq is told of new bindings: `pidfile`, `command` or `none`, and its argument."""

    kind: str
    value: str


@dataclass(frozen=True)
class Config:
    """What the environment says; made by `load()` only."""

    mode: str
    root: Path
    cp_bind: Endpoint
    agent_bind: Endpoint
    cp_token: str = field(repr=False)
    agent_token: str = field(repr=False)
    auto_register: bool
    auto_register_max: int
    auto_boot_timeout: int
    boot_menu_timeout: int
    dnsmasq_reload_set: Reload | None
    dnsmasq_leases: Path
    agent_timeout: float
    disk_dir: Path
    iqn_base: str
    agent_backend: str
    agent_reflink: str
    stgt_control_port: int
    stgt_socket: Path | None
    iscsi_portal: Endpoint
    lio_write_back: bool
    log_file: Path
    serve_workers: int
    serve_threads: int
    tls: bool

    @property
    def dnsmasq_reload(self) -> Reload:
        """The way to reload dnsmasq now: without a set way, dnsmasq may appear or go while we run."""
        if self.dnsmasq_reload_set is not None:
            return self.dnsmasq_reload_set
        if DNSMASQ_PIDFILE.exists():
            return Reload("pidfile", str(DNSMASQ_PIDFILE))
        return Reload("none", "")

    @property
    def bind(self) -> Endpoint:
        """Where this mode listens."""
        return self.agent_bind if self.mode == AGENT else self.cp_bind


class _Reader:
    """Reads typed values from an environment; empty means not set."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def text(self, name: str, default: str = "") -> str:
        return self._environ.get(name, "").strip() or default

    def boolean(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if not text:
            return default
        match text.lower():
            case "true" | "1":
                return True
            case "false" | "0":
                return False
        raise ConfigError(name, text, "must be true, false, 1 or 0")

    def whole(
        self, name: str, default: int, low: int, high: int, unit: str = ""
    ) -> int:
        text = self.text(name)
        if not text:
            return default
        if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
            what = f"a whole number of {unit}" if unit else "a whole number"
            raise ConfigError(name, text, f"must be {what} from {low} to {high}")
        return int(text)

    def seconds(self, name: str, default: float, high: float) -> float:
        text = self.text(name)
        if not text:
            return default
        # "nan", "inf" and "1e9" are floats for Python, but not what anybody means here.
        if (
            not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", text)
            or not 0 < float(text) <= high
        ):
            raise ConfigError(
                name, text, f"must be seconds, above 0 and up to {high:g}"
            )
        return float(text)

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self.text(name, default).lower()
        if text not in choices:
            raise ConfigError(name, text, f"must be one of {', '.join(choices)}")
        return text

    def path(self, name: str, default: Path) -> Path:
        text = self.text(name)
        if "\0" in text:
            raise ConfigError(name, text, "must be a path")
        return Path(text).expanduser().absolute() if text else default

    def endpoint(self, name: str, default: str) -> Endpoint:
        text = self.text(name, default)
        rule = "must be address:port, for example 0.0.0.0:4839 or [::]:4839"
        match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\[\]]+)):([0-9]{1,5})", text)
        if not match:
            raise ConfigError(name, text, rule)
        host, port = match[1] or match[2], int(match[3])
        if not 0 < port < 65536:
            raise ConfigError(name, text, "the port must be from 1 to 65535")
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            if host != "localhost":
                raise ConfigError(name, text, rule + "; not a host name") from None
            return Endpoint("127.0.0.1", port)
        return Endpoint(str(address), port)

    def secret(self, name: str) -> str:
        """The value of NAME, or the content of the file that NAME_FILE names."""
        text, file_name = self.text(name), self.text(f"{name}_FILE")
        if text and file_name:
            raise ConfigError(f"{name}_FILE", file_name, f"give it or {name}, not both")
        if file_name:
            try:
                text = Path(file_name).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError, ValueError):
                rule = "must be the path of a readable text file"
                raise ConfigError(f"{name}_FILE", file_name, rule) from None
            if not text:
                raise ConfigError(
                    f"{name}_FILE", file_name, "the file must not be empty"
                )
        if not re.fullmatch(r"[\x21-\x7e]*", text):
            rule = "must be printable ASCII without blanks, as it travels in a header"
            # A secret is never repeated in a message.
            raise ConfigError(f"{name}_FILE" if file_name else name, "...", rule)
        return text

    def reload(self, name: str) -> Reload | None:
        text = self.text(name)
        if not text:
            return None
        kind, _, value = text.partition(":")
        value = value.strip()
        if kind == "none" and not value and ":" not in text:
            return Reload("none", "")
        if kind == "pidfile" and value.startswith("/"):
            return Reload("pidfile", value)
        if kind == "command" and value:
            return Reload("command", value)
        rule = "must be pidfile:/absolute/path, command:WORDS or none"
        raise ConfigError(name, text, rule)

    def iqn_base(self, name: str, default: str) -> str:
        text = self.text(name, default)
        try:
            return check_base_iqn(text)
        except ApplicationError as error:
            raise ConfigError(name, text, error.message) from None

    def socket(self, name: str) -> Path | None:
        text = self.text(name)
        if not text:
            return None
        if not text.startswith("/") or len(text.encode()) > SOCKET_MAX:
            rule = f"must be an absolute path of at most {SOCKET_MAX} bytes"
            raise ConfigError(name, text, rule)
        return Path(text)


def load(environ: Mapping[str, str]) -> Config:
    """Return the checked configuration, or raise ConfigError for the first wrong value."""
    read = _Reader(environ)
    mode = read.choice("IPXE_MODE", CONTROL, MODES)
    root = read.path("IPXE_ROOT", REPOSITORY)
    agent = mode == AGENT
    day = 24 * 60 * 60 * 1000
    serve_workers = read.whole("IPXE_SERVE_WORKERS", 1 if agent else 2, 1, 64)
    if agent and serve_workers != 1:
        rule = "must be 1 in agent mode: one process owns the images and their jobs; add threads"
        raise ConfigError("IPXE_SERVE_WORKERS", str(serve_workers), rule)
    return Config(
        mode=mode,
        root=root,
        cp_bind=read.endpoint("IPXE_CP_BIND", "0.0.0.0:4839"),
        agent_bind=read.endpoint("IPXE_AGENT_BIND", "0.0.0.0:4840"),
        cp_token=read.secret("IPXE_CP_TOKEN"),
        agent_token=read.secret("IPXE_AGENT_TOKEN"),
        auto_register=read.boolean("IPXE_CP_AUTO_REGISTER", True),
        auto_register_max=read.whole("IPXE_CP_AUTO_REGISTER_MAX", 2000, 0, 1_000_000),
        auto_boot_timeout=read.whole(
            "IPXE_CP_AUTO_BOOT_TIMEOUT", 1000, 0, day, "milliseconds"
        ),
        boot_menu_timeout=read.whole(
            "IPXE_CP_BOOT_MENU_TIMEOUT", 5000, 0, day, "milliseconds"
        ),
        dnsmasq_reload_set=read.reload("IPXE_CP_DNSMASQ_RELOAD"),
        dnsmasq_leases=read.path("IPXE_CP_DNSMASQ_LEASES", DNSMASQ_LEASES),
        agent_timeout=read.seconds("IPXE_CP_AGENT_TIMEOUT", 10, 600),
        disk_dir=read.path("IPXE_DISK_DIR", root / "images"),
        iqn_base=read.iqn_base("IPXE_IQN_BASE", "iqn.2026-07.com.controller"),
        agent_backend=read.choice("IPXE_AGENT_BACKEND", "auto", BACKENDS),
        agent_reflink=read.choice("IPXE_AGENT_REFLINK", "auto", REFLINK),
        stgt_control_port=read.whole("IPXE_STGT_CONTROL_PORT", 0, 0, STGT_PORT_MAX),
        stgt_socket=read.socket("IPXE_STGT_SOCKET"),
        iscsi_portal=read.endpoint("IPXE_ISCSI_PORTAL", "0.0.0.0:3260"),
        lio_write_back=read.boolean("IPXE_LIO_WRITE_BACK", False),
        log_file=read.path("IPXE_LOG_FILE", root / "state" / "agent-ops.jsonl"),
        serve_workers=serve_workers,
        serve_threads=read.whole("IPXE_SERVE_THREADS", 16 if agent else 8, 1, 256),
        tls=read.boolean("IPXE_TLS", False),
    )
