"""Every page of ours: what it is called in pictures, what it is for, and the way there. The README shows them in this order.

`tests/browser/test_every_page.py` walks them all; a new page gets its line here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.gallery import IQN, MASTER, Gallery

Way = Callable[[Page, Gallery], None]


@dataclass(frozen=True)
class Sight:
    """One page. `way` is its address, or the steps that lead to it."""

    name: str
    title: str
    purpose: str
    way: str | Way
    #: Who sees it; None is nobody who has logged in.
    role: str | None = "administrator"
    #: Pictured in Chinese too.
    main: bool = False
    #: Laid out by us: Django REST framework's pages are not.
    ours: bool = True
    #: What must be so while it is looked at.
    while_: str = ""

    def circumstances(self, gallery: Gallery) -> Any:
        """A block in which the page is as it is to be shown."""
        return getattr(gallery, self.while_)() if self.while_ else nullcontext()

    def visit(self, page: Page, gallery: Gallery) -> None:
        """Go there; whatever the page asks for by itself has come."""
        if callable(self.way):
            self.way(page, gallery)
        else:
            answer = page.goto(self.way)
            assert answer is not None
            assert answer.status == 200, f"{self.way} answers {answer.status}"
        page.wait_for_load_state("networkidle")


def _second_step_of_a_node(page: Page, gallery: Gallery) -> None:
    page.goto("/admin/agents/agent/add/")
    page.fill("[name=base_url]", gallery.third.base_url)
    page.fill("[name=token]", gallery.third.token)
    page.locator("#content-main form [type=submit]").click()
    page.wait_for_url("**/add/?probe=*")


def _chosen(page: Page, gallery: Gallery) -> None:
    page.goto("/admin/board/?search=lab-")
    # Each language makes disks of its own.
    chinese = page.get_attribute("html", "lang") == "zh-hans"
    page.select_option("#id_os", "centos" if chinese else "ubuntu")
    page.locator("button[data-do=none]").click()
    page.locator("button[data-do=page]").click()
    for node in ("local", "store-01"):
        page.locator(f'.node[data-node="{node}"] input[name=on]').check()
    page.locator("button[name=share]").click()
    expect(page.locator("#count")).to_contain_text("store-01")
    page.select_option("#id_name", MASTER)


def _asked(page: Page, gallery: Gallery) -> None:
    _chosen(page, gallery)
    page.locator('#board button[formaction$="/board/disks/"]').click()
    page.wait_for_url("**/admin/board/disks/")


def _applied(page: Page, gallery: Gallery) -> None:
    _asked(page, gallery)
    page.locator("button[name=begin]").click()
    page.wait_for_url("**/admin/board/jobs/**")
    expect(page.locator(".status-done, .status-failed")).to_be_visible()


def _to_be_deleted(page: Page, gallery: Gallery) -> None:
    page.goto("/admin/board/?search=worker-0")
    page.locator("button[data-do=none]").click()
    page.locator("button[data-do=page]").click()
    page.locator('#board button[formaction$="/board/delete/"]').click()
    page.wait_for_url("**/admin/board/delete/")


def _one_job(page: Page, gallery: Gallery) -> None:
    page.goto("/admin/jobs/")
    page.locator('main a[href*="/admin/jobs/"]:not([href*="?"])').first.click()
    page.wait_for_url(re.compile(r"/admin/jobs/[^/]+/$"))


def _deleted(page: Page, gallery: Gallery) -> None:
    name = gallery.spare_worker()
    page.goto(f"/admin/workers/worker/{name}/delete/")
    page.locator("#content-main form [type=submit]").click()
    page.wait_for_url("**/deleted/**")


def _new_token(page: Page, gallery: Gallery) -> None:
    page.goto("/admin/account/")
    chinese = page.get_attribute("html", "lang") == "zh-hans"
    name = "nightly" if chinese else "laptop"
    page.locator('form[aria-labelledby="new"] [type=text]').first.fill(name)
    page.locator('form[aria-labelledby="new"] [type=submit]').click()
    expect(page.locator("#token")).to_be_visible()


WORKER = "/admin/workers/worker"
NODE = "/admin/agents/agent"
_DISK = f"?iqn={IQN}:worker-01.ubuntu"

AREAS: dict[str, tuple[Sight, ...]] = {
    "Start": (
        Sight("login", "Log in", "one form; it slows down who guesses", "/admin/login/",
              role=None, main=True),
        Sight("start", "Dashboard", "workers by state, nodes and their room, what is wrong now and where to mend it",
              "/admin/", main=True),
    ),
    "Workers": (
        Sight("workers", "Workers", "search, filters, order, pages; the switch for registration by itself",
              f"{WORKER}/", main=True),
        Sight("worker", "One worker", "who it is and its MACs, its disks and CD, what it boots, what its firmware is told",
              f"{WORKER}/worker-01/change/", main=True),
        Sight("worker-live", "One worker, asked now", "its lease, its targets, who is connected",
              f"{WORKER}/worker-01/change/?live=1"),
        Sight("worker-add", "A new worker, step 1", "name and MAC", f"{WORKER}/add/", main=True),
        Sight("worker-add-disk", "A new worker, step 2", "an empty disk, or a clone of a master", f"{WORKER}/worker-06/disk/add/?new=1",
              main=True),
        Sight("disk-add", "One more disk", "for another system", f"{WORKER}/worker-01/disk/add/"),
        Sight("disk-grow", "Growing a disk", "it never shrinks", f"{WORKER}/worker-01/disk/ubuntu/grow/"),
        Sight("disk-reset", "Resetting a disk", "back to its master", f"{WORKER}/worker-01/disk/ubuntu/reset/"),
        Sight("disk-delete", "Deleting a disk", "with its image, or without", f"{WORKER}/worker-01/disk/windows/delete/"),
        Sight("cd-attach", "An install CD", "one of the ISO files of a node", f"{WORKER}/worker-06/cd/attach/"),
        Sight("worker-access", "Access to its disks", "open, its own initiator only, or with a secret",
              f"{WORKER}/worker-01/access/"),
        Sight("worker-delete", "Deleting a worker", "what goes, what stays, whom it cuts off",
              f"{WORKER}/worker-01/delete/"),
        Sight("worker-deleted", "A worker is gone", "what became of each thing that it had", _deleted),
    ),
    "Batch board": (
        Sight("board", "Board", "many workers at once: tick rows, drag nodes on them", "/admin/board/", main=True),
        Sight("board-chosen", "Shared out", "two nodes share the chosen ones; masters that both have", _chosen),
        Sight("board-ask", "Before it begins", "what will happen to each", _asked),
        Sight("board-result", "Result", "a line for each worker, with the reason where it failed", _applied, main=True),
        Sight("board-delete", "Deleting many", "what will go and what will stay, before anything does", _to_be_deleted),
    ),
    "Storage nodes": (
        Sight("nodes", "Nodes", "as they were last asked, or asked now", f"{NODE}/", main=True),
        Sight("node", "One node", "its health, its targets and who uses each, its jobs", f"{NODE}/local/change/", main=True),
        Sight("node-add", "A new node, step 1", "its address and token", f"{NODE}/add/"),
        Sight("node-add-register", "A new node, step 2", "what is there, and what it is to us", _second_step_of_a_node),
        Sight("node-edit", "Changing a node", "an empty token keeps the one there is", f"{NODE}/store-01/edit/"),
        Sight("node-images", "Its images", "upload, convert, delete; masters and ISO files", f"{NODE}/local/images/", main=True),
        Sight("image-delete", "Deleting an image", "only what nobody uses", f"{NODE}/local/images/delete/?name=rocky-9.img"),
        Sight("node-disk-add", "A disk of its own", "a target that is no worker's", f"{NODE}/local/luns/disk/add/"),
        Sight("node-cd-add", "A CD of its own", "or the reason why it cannot", f"{NODE}/local/luns/cd/add/"),
        Sight("node-target-delete", "Deleting a target", "who uses it, and with its image or without",
              f"{NODE}/local/luns/delete/{_DISK}"),
        Sight("node-target-access", "Access to a target", "who may log in", f"{NODE}/local/luns/access/{_DISK}"),
        Sight("node-access", "Access to a whole node", "for all its workers at once", f"{WORKER}/of-node/local/set-access/"),
        Sight("node-log", "Its log", "what the agent wrote, newest first", f"{NODE}/local/log/"),
        Sight("node-delete", "Removing a node", "only from our list", f"{NODE}/store-02/delete/"),
    ),
    "Jobs": (
        Sight("jobs", "Jobs", "long work, running and done", "/admin/jobs/", main=True),
        Sight("job", "One job", "how far it is; leave it and find it again", _one_job),
    ),
    "Operations": (
        Sight("operations", "Operations", "who did what, when; filters, export", "/admin/audit/operation/", main=True),
        Sight("operation", "One operation", "all that was written down", "/admin/audit/operation/1/change/"),
    ),
    "Files and settings": (
        Sight("files", "Files", "what machines may fetch", "/admin/files/", main=True),
        Sight("files-folder", "A folder", "the way back is above the list", "/admin/files/debian/"),
        Sight("settings", "Settings", "what is switched while it runs", "/admin/bootvars/setting/", main=True),
        Sight("broken-file", "A file that does not parse", "file, line and what is wrong, on every page",
              f"{WORKER}/", while_="broken_ledger"),
        Sight("api", "The API in a browser", "every endpoint is a page", "/workers", ours=False),
    ),
    "People": (
        Sight("users", "Users", "who there is, and with which role", "/admin/users/operator/", main=True),
        Sight("user", "One person", "role, password, disabled or not", "/admin/users/operator/oscar/change/"),
        Sight("user-tokens", "Somebody's tokens", "revoke them, end the logins", "/admin/accounts/oscar/"),
        Sight("user-add", "A new person", "name, role, first password", "/admin/users/operator/add/"),
        Sight("user-delete", "Removing a person", "their tokens go too", "/admin/users/operator/victor/delete/"),
        Sight("account", "Your account", "your tokens for scripts", "/admin/account/", main=True),
        Sight("account-token", "A new token", "shown this once", _new_token),
        Sight("password", "Your password", "the old one, and a new one twice", "/admin/password_change/"),
    ),
}  # fmt: skip

SIGHTS = {sight.name: sight for area in AREAS.values() for sight in area}
