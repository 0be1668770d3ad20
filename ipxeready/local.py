"""`make run`: everything on this machine in one terminal, and all of it gone with Ctrl-C.

The kernel's iSCSI target where there is one, else a target daemon of our own; the agent, the control plane, and
the node `local` in agents.yml.
DHCP only when IFACE and RANGE are given.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ipxeready import conf, lio, localnode, startup
from ipxeready.children import Child, guarded
from ipxeready.conf import REPOSITORY, SOCKET_MAX, ConfigError
from ipxeready.reach import (
    answers,
    check_free,
    default_route_address,
    interface_address,
    reachable,
)
from ipxeready.startup import StartError
from ipxeready.storage.paths import Layout
from workers import dnsmasq_options

FIRMWARE: Final = ("undionly.kpxe", "snponly.efi")
FIRMWARE_FOLDER: Final = Path("/usr/lib/ipxe")
#: Seconds for a part to answer; a cold index of ten thousand workers takes about five.
PATIENCE: Final = 90.0
#: A part that others do not live on is started again: after a pause, and not for the nth death within a minute.
PAUSE: Final = 1.0
DEATHS, MINUTE = 4, 60.0


def say(text: str) -> None:
    """A line for the terminal, at once."""
    print(text, flush=True)  # noqa: T201


@contextmanager
def only_once(layout: Layout) -> Iterator[bool]:
    """Whether we are the only one on this root; held until the end."""
    path = layout.run / "local.lock"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


class Here:
    """The parts on this machine and how they are started."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = {**environ, "PYTHONUNBUFFERED": "1"}
        self.control = conf.load({**environ, "IPXE_MODE": conf.CONTROL})
        self.layout = Layout(self.control.root)
        self.children: list[Child] = []
        self._again: dict[str, Callable[[], Child]] = {}
        self._deaths: dict[str, deque[float]] = {}
        startup.prepare(self.control, self.layout)
        self.backend = self._choose_backend()
        if self.backend == "stgt":
            self.environ["IPXE_STGT_SOCKET"] = str(self._tgt_socket())
        self.environ["IPXE_AGENT_BACKEND"] = self.backend
        # The node's log beside our own state, and one process whatever the control plane has.
        agent = {
            **self.environ,
            "IPXE_MODE": conf.AGENT,
            "IPXE_SERVE_WORKERS": "",
            "IPXE_SERVE_THREADS": "",
        }
        self.agent_environ = agent
        self.agent = conf.load(agent)
        startup.prepare(self.agent, self.layout)

    def _choose_backend(self) -> str:
        wanted = self.control.agent_backend
        if wanted != "auto":
            return wanted
        why_not = lio.problem()
        if why_not is None:
            return "lio"
        if shutil.which("tgtd") and shutil.which("tgtadm") and os.geteuid() == 0:
            return "stgt"
        say(
            f"no iSCSI: {why_not}, and tgtd is not installed or we are not root; images are managed without it"
        )
        return "files"

    def _tgt_socket(self) -> Path:
        path = self.layout.run / "tgtd"
        if len(os.fsencode(path)) <= SOCKET_MAX:
            return path
        return Path(tempfile.gettempdir()) / f"ipxeready-tgtd-{os.getpid()}"

    # --- starting ---------------------------------------------------------
    def check_ports(self) -> None:
        """Say in one line what is taken, before anything is started."""
        check_free("the control plane", self.control.cp_bind, "IPXE_CP_BIND")
        check_free("the agent", self.agent.agent_bind, "IPXE_AGENT_BIND")
        if self.backend == "stgt":
            check_free("iSCSI", self.agent.iscsi_portal, "IPXE_ISCSI_PORTAL")

    def start(self) -> None:
        """Start the parts in order, each when the one before answers."""
        dhcp = self._dhcp()
        copy_firmware(self.layout)
        if self.backend == "stgt":
            self._start_tgtd()
        python = [sys.executable, str(REPOSITORY / "manage.py"), "serve"]
        agent = self._lasting("agent", python, self.agent_environ)
        self._wait(agent, lambda: answers(self.agent_url))
        environ = {**self.environ, "IPXE_MODE": conf.CONTROL}
        if dhcp and not self.control.dnsmasq_reload_set:
            environ["IPXE_CP_DNSMASQ_RELOAD"] = f"pidfile:{self._pidfile}"
        if dhcp:
            environ["IPXE_CP_DNSMASQ_LEASES"] = str(self._leasefile)
        control = self._lasting("control", python, environ)
        self._wait(control, lambda: answers(self.url))
        if dhcp:
            self._child("dnsmasq", guarded(dhcp), self.environ)
        self._register()

    def _child(
        self,
        name: str,
        command: list[str],
        environ: Mapping[str, str],
        on_our_death: int = signal.SIGTERM,
    ) -> Child:
        log = self.layout.run / f"{name}.log"
        log.write_bytes(b"")
        child = Child(
            name, command, log=log, environ=environ, on_our_death=on_our_death
        )
        self.children.append(child)
        return child

    def _lasting(
        self, name: str, command: list[str], environ: Mapping[str, str]
    ) -> Child:
        """A part that is started again when it dies; the end of its log stays."""
        self._again[name] = lambda: Child(
            name, command, log=self.layout.run / f"{name}.log", environ=environ
        )
        return self._child(name, command, environ)

    def _wait(self, child: Child, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not ready():
            if child.ended:
                raise StartError(
                    f"{child.name} has ended, see {child.log}:\n{child.last_lines()}"
                )
            if time.monotonic() > end:
                raise StartError(f"{child.name} does not answer, see {child.log}")
            time.sleep(0.1)

    def _start_tgtd(self) -> None:
        portal = self.agent.iscsi_portal
        command = [
            "tgtd",
            "--foreground",
            # Sixteen threads a disk is its default; one is as fast and much smaller.
            "--nr_iothreads=1",
            f"--control-port={self.agent.stgt_control_port}",
            "--iscsi",
            f"portal={portal}",
        ]
        environ = {**self.environ, "TGT_IPC_SOCKET": str(self.agent.stgt_socket)}
        # It ignores SIGTERM while it has targets.
        child = self._child("tgtd", command, environ, on_our_death=signal.SIGKILL)
        show = [
            "tgtadm",
            "-C",
            str(self.agent.stgt_control_port),
            "--op",
            "show",
            "--mode",
            "sys",
        ]

        def ready() -> bool:
            done = subprocess.run(
                show, env=environ, capture_output=True, timeout=10, check=False
            )
            return done.returncode == 0

        self._wait(child, ready)

    @property
    def _pidfile(self) -> Path:
        return self.layout.run / "dnsmasq.pid"

    @property
    def _leasefile(self) -> Path:
        return self.layout.run / "dnsmasq.leases"

    def _dhcp(self) -> list[str] | None:
        """The command of our dnsmasq, when it is asked for."""
        interface, span = self.environ.get("IFACE", ""), self.environ.get("RANGE", "")
        if not interface and not span:
            return None
        if not interface or not span:
            raise StartError(
                "DHCP needs both: make run IFACE=eth1 RANGE=192.0.2.100,192.0.2.200"
            )
        interface_address(interface)
        if not (self.layout.dnsmasq / "dnsmasq.conf").exists():
            raise StartError(
                f"{self.layout.dnsmasq}/dnsmasq.conf is missing: copy the shipped one"
            )
        return dnsmasq_options.command(
            self.layout,
            interface=interface,
            dhcp_range=span,
            lease_file=self._leasefile,
            pid_file=self._pidfile,
        )

    # --- the node ---------------------------------------------------------
    @property
    def url(self) -> str:
        """Where we reach the control plane."""
        return f"http://{reachable(self.control.cp_bind)}:{self.control.cp_bind.port}"

    @property
    def agent_url(self) -> str:
        """Where the control plane reaches the agent."""
        return f"http://{reachable(self.agent.agent_bind)}:{self.agent.agent_bind.port}"

    def _our_address(self) -> str:
        """Where machines and people reach us: on the machines' card where that is given."""
        interface = self.environ.get("IFACE", "")
        return interface_address(interface) if interface else default_route_address()

    def _register(self) -> None:
        """Add the node `local` through the API, unless there is one."""
        portal = self.agent.iscsi_portal.host
        wildcard = portal in ("0.0.0.0", "::")  # noqa: S104
        hint = localnode.register(
            localnode.Api(
                self.url, secret(self.control.cp_token, self.layout.cp_token)
            ),
            base_url=self.agent_url,
            token=secret(self.agent.agent_token, self.layout.agent_token),
            iscsi_server=self._our_address() if wildcard else portal,
        )
        if hint and self.environ.get("IFACE"):
            say(hint)

    # --- running and ending ---------------------------------------------------
    def greeting(self) -> str:
        """What to do next."""
        shown = self.url
        if self.control.cp_bind.host == "0.0.0.0":  # noqa: S104
            shown = f"http://{self._our_address()}:{self.control.cp_bind.port}"
        try:
            password = self.layout.first_login.read_text(encoding="utf-8").strip()
        except OSError:
            password = (
                "(yours; `.venv/bin/python manage.py user password NAME` sets another)"  # noqa: S105
            )
        lines = [
            f"ipxeready runs:  {shown}/",
            "user:            admin",
            f"password:        {password}",
            *(line.replace(": ", ":           ", 1) for line in self._token_note()),
            f"iSCSI:           {self.backend}",
            *self._dhcp_note(),
            f"logs:            {self.layout.run}/*.log",
            "Ctrl-C ends it.",
        ]
        return "\n".join(lines)

    def _dhcp_note(self) -> list[str]:
        interface, span = self.environ.get("IFACE"), self.environ.get("RANGE")
        return [f"DHCP, TFTP:      {interface}, {span}"] if interface else []

    def _token_note(self) -> list[str]:
        return [
            line
            for line in startup.notes(self.control, self.layout)
            if line[:6] == "token:"
        ]

    def watch(self) -> Child:
        """Wait until a part ends by itself that is not started again, and return it."""
        while True:
            for place, child in enumerate(self.children):
                if not child.ended:
                    continue
                if not self._may_start_again(child):
                    return child
                say(
                    f"{child.name} has ended and is started again, see {child.log}:\n{child.last_lines()}"
                )
                time.sleep(PAUSE)
                self.children[place] = self._again[child.name]()
            time.sleep(0.5)

    def _may_start_again(self, child: Child) -> bool:
        """Machines keep their disks meanwhile, for the target daemon runs on."""
        if child.name not in self._again:
            return False
        now = time.monotonic()
        deaths = self._deaths.setdefault(child.name, deque(maxlen=DEATHS))
        deaths.append(now)
        if len(deaths) < DEATHS or now - deaths[0] > MINUTE:
            return True
        say(f"{child.name} has ended {DEATHS} times within a minute; ending")
        return False

    def stop(self) -> None:
        """End the parts, those first that use the others."""
        for child in reversed(self.children):
            child.stop(0.5 if child.name == "tgtd" else 15)
        if self.backend == "lio" and self.children:
            # The kernel would go on serving them.
            subprocess.run(
                [sys.executable, "-m", "agents.node.withdraw"],
                cwd=REPOSITORY,
                env=self.agent_environ,
                check=False,
            )
        if self.backend == "stgt" and self.agent.stgt_socket:
            for left in self.agent.stgt_socket.parent.glob(
                f"{self.agent.stgt_socket.name}.*"
            ):
                if left.is_socket() or left.suffix == ".lock":
                    left.unlink(missing_ok=True)


def secret(given: str, file: Path) -> str:
    """A token of the environment, else that of the file."""
    return given or file.read_text(encoding="ascii").strip()


def copy_firmware(layout: Layout) -> None:
    """Put the loaders where TFTP serves them; a missing package is said, not fatal."""
    for name in FIRMWARE:
        source, target = FIRMWARE_FOLDER / name, layout.tftp / name
        if not source.exists():
            if not target.exists():
                say(
                    f"{source} is missing: `apt-get install ipxe`, or put {target} there yourself"
                )
        elif not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)


def run(environ: Mapping[str, str]) -> int:
    """Start everything, say where it is, and stay until Ctrl-C or until a part ends for good."""
    here = Here(environ)
    with only_once(here.layout) as alone:
        if not alone:
            say(f"it runs already, in another terminal: {here.url}/")
            return 0
        here.check_ports()
        try:
            here.start()
            say(here.greeting())
            gone = here.watch()
            say(f"{gone.name} has ended, see {gone.log}:\n{gone.last_lines()}")
            return 1
        except KeyboardInterrupt:
            say("ending")
            return 0
        finally:
            # Once is enough: the rest must not be left behind half way.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            here.stop()


def _interrupt(_signum: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """The entry of `make run`; what is wrong is one line."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, _interrupt)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup stays what it is
        signal.signal(signal.SIGHUP, _interrupt)
    try:
        return run(os.environ)
    except (ConfigError, StartError) as error:
        print(f"ipxeready: {error}", file=sys.stderr)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
