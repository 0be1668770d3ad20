"""The room that is pictured: a small one with a bit of everything, the same at every run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.browser.product import MIB, Product
from tests.nodes import RealNode, serving

MASTER = "ubuntu_tpl_24.04.img"
IQN = "iqn.2026-07.com.controller"


class Gallery:
    """A furnished product, a second storage node that it knows, and a third that it does not."""

    def __init__(self, product: Product, second: RealNode, third: RealNode) -> None:
        self.product, self.second, self.third = product, second, third

    def spare_worker(self) -> str:
        """A worker to delete."""
        return self.product.worker("spare")

    def words(self) -> dict[str, str]:
        """What is different at every run, and what pictures show for it."""
        ports = {
            self.product.url: "http://192.0.2.1:4839",
            self.second.base_url: "http://192.0.2.11:4840",
            self.third.base_url: "http://192.0.2.13:4840",
            f"http://{self.product.environ['IPXE_AGENT_BIND']}": "http://127.0.0.1:4840",
            self.product.environ["IPXE_ISCSI_PORTAL"]: "192.0.2.1:3260",
        }
        return {**ports, str(self.product.root): "/srv/ipxeready"}

    @contextlib.contextmanager
    def broken_ledger(self) -> Iterator[None]:
        """The list of workers does not parse for the length of a block."""
        path = self.product.root / "state" / "workers.yml"
        before = path.read_bytes()
        try:
            path.write_bytes(before + b"  worker-99: [\n")
            yield
        finally:
            path.write_bytes(before)


@contextlib.contextmanager
def gallery(folder: Path) -> Iterator[Gallery]:
    """The room for the length of a block."""
    product = Product(folder / "room")
    with contextlib.ExitStack() as ending:
        second = ending.enter_context(serving(folder / "second", "files"))
        third = ending.enter_context(serving(folder / "third", "files"))
        second.image(MASTER, size=48 * MIB)
        ending.callback(product.end)
        product.start()
        product.furnish()
        _hang(product, second)
        yield Gallery(product, second, third)


def _hang(product: Product, second: RealNode) -> None:
    """What pages show beside workers and disks: a node more, images of all kinds, files for machines, a token."""
    node = {
        "id": "store-01",
        "base_url": second.base_url,
        "token": second.token,
        "role": {"disk": True, "cd": False},
        "tags": ["storage"],
    }
    product.call("POST", "/agents", node)
    spec = {"type": "empty", "os": "debian", "size": "64M", "disk_agent": "store-01"}
    product.call("POST", "/workers/worker-02/luns/disk", spec)
    for number in range(1, 6):
        body = {"worker_id": f"lab-{number:02d}", "mac": f"52:54:00:00:01:{number:02x}"}
        product.call("POST", "/workers", body)
    images = product.root / "images"
    for name, size in (("debian-12.iso", 12), ("rocky-9.img", 32)):
        with (images / name).open("wb") as file:
            file.truncate(size * MIB)
    public = product.root / "public"
    (public / "debian").mkdir(parents=True)
    for name, size in (
        ("debian/linux", 8 * MIB),
        ("debian/initrd.gz", 30 * MIB),
        ("preseed.cfg", 2310),
        ("wallpaper.png", 184_320),
    ):
        with (public / name).open("wb") as file:
            file.truncate(size)
    words = ("token", "create", "alice", "inventory", "--role", "viewer")
    product.manage(*words)
