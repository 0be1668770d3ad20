"""A guest: a machine with a kernel of Debian's, which has the target (LIO), a fresh data disk, and the product as it is now.

Programs run in it as they do on a machine: `run` for one that ends, `start` for one that stays, `results` for one that
reports line by line. Its `/data` is XFS or Btrfs, so that clones are reflinks. Nothing of it outlives the test.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lab import lab_guest_code
from tests.lab.lab_guest_image import guest_image
from tests.lab.lab_network import Network
from tests.lab.lab_process import Process, Transcript, run

#: Of the target. The kernel's own tools load them as well; a guest without them shows what the product does then.
TARGET_MODULES = ("target_core_mod", "target_core_file", "iscsi_target_mod")
#: From power-on to the first program takes 10 s on a quiet machine.
_BOOT = 120.0
_MKFS = {
    "xfs": ("mkfs.xfs", "-q", "-m", "reflink=1"),
    "btrfs": ("mkfs.btrfs", "-q"),
}


class GuestProgram(Transcript):
    """A program in a guest; what it says on both its outputs is its text, standard output alone is in `lines` too."""

    def __init__(self, guest: Guest, number: int, name: str, log: Path) -> None:
        super().__init__(name, log)
        self._guest = guest
        self._number = number
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._rest = ""
        self._ended = threading.Event()
        self.out = ""
        self.err = ""
        self.status: int | None = None

    def hear(self, message: Mapping[str, Any]) -> None:
        """What the guest says about it."""
        for stream in ("out", "err"):
            if text := message.get(stream):
                setattr(self, stream, getattr(self, stream) + text)
                self._said(text.encode("latin-1", "replace"))
        *lines, self._rest = (self._rest + message.get("out", "")).split("\n")
        for line in lines:
            self._lines.put(line)
        if "status" in message:
            self._end(message["status"])

    def _end(self, status: int | None) -> None:
        if self._rest:
            self._lines.put(self._rest)
        self.status = status
        self._ended.set()
        self._lines.put(None)

    def lose(self) -> None:
        """The guest is gone, and it with it."""
        if not self._ended.is_set():
            self._end(None)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return not self._ended.is_set()

    def wait(self, within: float) -> int:
        """Its exit status, minus the signal's number when one ended it."""
        ended = self._ended.wait(within)
        assert ended, f"{self.name} still runs after {within:g} s:\n{self._last_words}"
        assert self.status is not None, (
            f"the guest ended before {self.name}:\n{self._last_words}"
        )
        return self.status

    @property
    def _last_words(self) -> str:
        return f"{self.text[-3000:]}\n{self._guest.last_words}"

    def lines(self, within: float) -> Iterator[str]:
        """The lines of its standard output as they come, until it ends; each may take that long."""
        while True:
            try:
                line = self._lines.get(timeout=within)
            except queue.Empty:
                raise AssertionError(
                    f"{self.name} says nothing for {within:g} s:\n{self._last_words}"
                ) from None
            if line is None:
                return
            yield line

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to it, or to all that it has started, too."""
        self._guest.tell(id=self._number, signal=number, group=group)

    def kill(self) -> None:
        """End it and all that it has started by SIGKILL."""
        self.signal(signal.SIGKILL, group=True)
        self.wait(10)

    def stop(self, patience: float = 10.0) -> None:
        """End it: SIGTERM, then SIGKILL to all that it has started."""
        if self.running:
            self.signal(signal.SIGTERM)
            if not self._ended.wait(patience):
                self.kill()


class Guest:
    """Up when made, off at the end of the block. In a lab's network with an address, or without any network.

    With a `disk` (made when it is not there), the next guest on it finds what this one has written. Files given as `drives` can
    be read as /dev/vde, /dev/vdf and so on, in that order.
    """

    def __init__(
        self,
        artifacts: Path,
        *,
        fs: str = "xfs",
        name: str = "guest",
        network: Network | None = None,
        address: str = "",
        modules: Sequence[str] = TARGET_MODULES,
        disk: Path | None = None,
        drives: Sequence[Path] = (),
        disk_gib: int = 8,
        memory: int = 1536,
    ) -> None:
        self.name = name
        self.address = address
        self._artifacts = artifacts
        self._network = network
        self._tap = network.add_tap() if network else ""
        self._programs: dict[int, GuestProgram] = {}
        self._numbers = itertools.count(1)
        self._ready = threading.Event()
        self._wire, theirs = socket.socketpair()
        self._one_at_a_time = threading.Lock()
        #: Seconds of the start's parts, by name.
        self.times: dict[str, float] = {}
        _sweep()
        self._folder = Path(tempfile.mkdtemp(prefix=f"ipxelab-{os.getpid()}-"))
        try:
            began = time.monotonic()
            image = guest_image(artifacts)
            packages = lab_guest_code.packages_image()
            repository = self._folder / "repository.img"
            lab_guest_code.repository_image(repository, self._folder)
            data = disk or self._folder / "data.img"
            if not data.exists():
                make_disk(data, fs, disk_gib)
            self.times["prepared"] = time.monotonic() - began
            words = {
                "fs": fs,
                "address": address and f"{address}/24",
                "modules": ",".join(modules),
                "host": name,
            }
            self.console = Process(
                name,
                [
                    "qemu-system-x86_64",
                    *("-nodefaults", "-no-user-config", "-no-reboot"),
                    *("-display", "none", "-machine", "q35"),
                    # tcg: the /dev/kvm of a test machine may be one on which guests hang.
                    *("-accel", "tcg,tb-size=256", "-cpu", "max"),
                    *("-m", str(memory), "-smp", "2"),
                    *("-kernel", str(image.kernel), "-initrd", str(image.initramfs)),
                    *("-append", _kernel_words(words)),
                    *("-chardev", "stdio,id=console,signal=off"),
                    *("-serial", "chardev:console"),
                    *("-chardev", f"socket,id=wire,fd={theirs.fileno()}"),
                    *("-device", "virtio-serial-pci"),
                    *("-device", "virtserialport,chardev=wire,nr=1"),
                    *_drive("root", image.root, "readonly=on"),
                    *_drive("packages", packages, "readonly=on"),
                    *_drive("repository", repository, "readonly=on"),
                    *_drive("data", data, "discard=unmap,detect-zeroes=unmap"),
                    *itertools.chain.from_iterable(
                        _drive(f"extra{number}", path, "readonly=on")
                        for number, path in enumerate(drives)
                    ),
                    *self._card(),
                ],
                artifacts=artifacts,
                namespace=network.switch if network else None,
                pass_fds=(theirs.fileno(),),
            )
            theirs.close()
            threading.Thread(target=self._listen, daemon=True).start()
            self._wait_ready()
            # QEMU has it open: so nothing is left of it when this process is killed.
            shutil.rmtree(self._folder)
        except BaseException:
            self.power_off()
            raise

    def _card(self) -> list[str]:
        if not self._network:
            return []
        return [
            *("-netdev", f"tap,id=net,ifname={self._tap},script=no,downscript=no"),
            *("-device", "virtio-net-pci,netdev=net,romfile="),
        ]

    def _wait_ready(self) -> None:
        end = time.monotonic() + _BOOT
        while not self._ready.wait(0.2):
            late = time.monotonic() > end
            if late or not self.console.running:
                state = f"not up within {_BOOT:g} s" if late else "off"
                raise AssertionError(f"{self.name} is {state}:\n{self.last_words}")
        self.times["up"] = time.monotonic() - self.console.started

    @property
    def last_words(self) -> str:
        """The end of what its console says."""
        return f"{self.name}'s console:\n{self.console.text[-3000:]}"

    def _listen(self) -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while data := self._wire.recv(1 << 16):
                *lines, rest = (rest + data).split(b"\n")
                for message in map(json.loads, lines):
                    if "ready" in message:
                        self.times["kernel"] = message["ready"]
                        self._ready.set()
                    else:
                        self._programs[message["id"]].hear(message)
        for program in list(self._programs.values()):
            program.lose()

    def tell(self, **message: Any) -> None:
        """One message to the guest's end of the wire, guest/serve.py."""
        with self._one_at_a_time:
            self._wire.sendall(json.dumps(message).encode() + b"\n")

    def start(
        self,
        command: Sequence[str],
        *,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        typed: str = "",
    ) -> GuestProgram:
        """Start a program; `typed` is its standard input. Its log is among the artifacts, by its name."""
        number = next(self._numbers)
        log = self._artifacts / f"{self.name}-{name or 'programs'}.log"
        program = GuestProgram(self, number, name or command[0], log)
        self._programs[number] = program
        self.tell(
            id=number,
            command=list(command),
            env={**(env or {})},
            cwd=cwd or str(lab_guest_code.PLACE),
            input=typed,
        )
        return program

    def run(
        self,
        command: Sequence[str],
        *,
        check: bool = True,
        within: float = 60.0,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; AssertionError with its words when it fails, unless told not to check."""
        program = self.start(command, **options)
        status = program.wait(within)
        assert not check or status == 0, f"{command}: {status}\n{program.text[-3000:]}"
        return subprocess.CompletedProcess(command, status, program.out, program.err)

    def results(
        self,
        command: Sequence[str],
        *,
        within: float = 120.0,
        **options: Any,
    ) -> Generator[dict[str, Any]]:
        """The JSON objects that a program says, one a line, as they come; at most that long from one to the next.

        Its other lines are in its log. AssertionError when it fails or hangs, behind all that it has said.
        """
        program = self.start(command, **options)
        try:
            for line in program.lines(within):
                if line.startswith("{"):
                    yield json.loads(line)
            status = program.wait(within)
            assert status == 0, f"{command}: {status}\n{program.text[-3000:]}"
        finally:
            program.stop()

    @staticmethod
    def python(*words: str) -> list[str]:
        """The command that runs Python with the product's packages; in the repository, as `start` has it."""
        return [str(lab_guest_code.PYTHON), *words]

    def power_off(self) -> None:
        """Pull the plug: what was not written to the disk is lost."""
        if hasattr(self, "console"):
            self.console.stop(0)
        with contextlib.suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)
        self._wire.close()
        if self._network and self._tap:
            self._network.remove_tap(self._tap)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Guest:
        return self

    def __exit__(self, *_: object) -> None:
        self.power_off()


def _sweep() -> None:
    """Remove what was prepared for guests whose maker is gone (a kill -9 before the guest was up)."""
    for path in Path(tempfile.gettempdir()).glob("ipxelab-*-*"):
        maker = path.name.split("-")[1]
        if not Path("/proc", maker).exists():
            shutil.rmtree(path, ignore_errors=True)


def make_disk(path: Path, fs: str, gib: int = 8) -> None:
    """A fresh disk with this file system; made here, since it takes the guest seconds."""
    with path.open("wb") as file:
        file.truncate(gib << 30)
    run(*_MKFS[fs], str(path))


def _kernel_words(words: Mapping[str, str]) -> str:
    fixed = (
        "console=ttyS0 quiet loglevel=4 panic=-1 rdinit=/init mitigations=off nokaslr "
        "tsc=unstable audit=0 random.trust_cpu=on"
        # A busy machine misses the ticks by which the kernel tries its timer: it would panic.
        " no_timer_check"
    )
    return " ".join([fixed, *(f"guest_{key}={word}" for key, word in words.items())])


def _drive(name: str, path: Path, options: str) -> list[str]:
    # The guest may trust what it has written to outlive its own end, not that of this machine.
    how = f"if=none,id={name},format=raw,cache=unsafe,{options}"
    return [
        *("-drive", f"file={path},{how}"),
        *("-device", f"virtio-blk-pci,drive={name}"),
    ]
