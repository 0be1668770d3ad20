"""What is wrong with workers, bindings and disks, from what the files and the nodes' last answers say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from ipxeready.storage.inflight import held
from ipxeready.web.troubles import Item, Trouble, kind, many
from workers import access, dnsmasq, selectors
from workers.models import Disk
from workers.settle import mark

#: Disks under way that are looked at: whoever works on more is at it.
LOOKED_AT: Final = 50

kind(
    "binding.dropped",
    title=ngettext_lazy(
        "dnsmasq does not see %(count)s line of dhcp-hosts.conf as it is meant",
        "dnsmasq does not see %(count)s lines of dhcp-hosts.conf as they are meant",
        "count",
    ),
    mend=_(
        "Mend the line, or delete the worker and register the machine again: its line is then written anew."
    ),
    codes=("hosts.line",),
)
kind(
    "binding.conflict",
    title=ngettext_lazy(
        "%(count)s contradiction in dhcp-hosts.conf: none of these machines gets its disk",
        "%(count)s contradictions in dhcp-hosts.conf: none of these machines gets its disk",
        "count",
    ),
    mend=_("Remove one of the lines that are named, or give it another hostname."),
    codes=("hosts.",),
)
kind(
    "worker.doubled",
    title=ngettext_lazy(
        "%(count)s hostname or disk stands in two records: none of these machines gets its disk",
        "%(count)s hostnames or disks stand in two records: none of these machines gets its disk",
        "count",
    ),
    mend=_(
        "Give each worker its own in state/workers.yml: a record that was copied by hand still names the other's."
    ),
    codes=("workers.hostname", "workers.disk"),
)
kind(
    "secret.unsettled",
    title=ngettext_lazy(
        "%(count)s login secret was being changed when something failed",
        "%(count)s login secrets were being changed when something failed",
        "count",
    ),
    mend=_("Set the worker's access again, with a new secret."),
    codes=("chap.next",),
)
RELOAD = kind(
    "dnsmasq.not_seen",
    title=ngettext_lazy(
        "dnsmasq does not have the bindings as they are written",
        "dnsmasq does not have the bindings as they are written",
        "count",
    ),
    mend=_(
        "Start dnsmasq: it reads them all. A machine that was registered meanwhile then boots with its name."
    ),
)
HOMELESS = kind(
    "disk.homeless",
    title=ngettext_lazy(
        "%(count)s disk lies on a node that is not registered: its machine cannot start",
        "%(count)s disks lie on nodes that are not registered: their machines cannot start",
        "count",
    ),
    mend=_("Register the node again under the same name, or delete the disk."),
)
STUCK = kind(
    "disk.stuck",
    title=ngettext_lazy(
        "%(count)s disk is half made or half deleted, and nobody works on it",
        "%(count)s disks are half made or half deleted, and nobody works on them",
        "count",
    ),
    mend=_(
        "It is settled by itself as soon as its node answers: look at the node first."
    ),
)
ACCESS = kind(
    "access.differs",
    title=ngettext_lazy(
        "%(count)s target lets in others than it should, or keeps its machine out",
        "%(count)s targets let in others than they should, or keep their machines out",
        "count",
    ),
    mend=_("Set the access again: of the worker, or of all targets of its node."),
)
UNBOUND = kind(
    "worker.unbound",
    title=ngettext_lazy(
        "%(count)s worker has no MAC: no machine boots as it",
        "%(count)s workers have no MAC: no machine boots as them",
        "count",
    ),
    mend=_("Bind one on the worker's page, or delete the worker."),
    grave=False,
)
STRANGE = kind(
    "binding.strange",
    title=ngettext_lazy(
        "%(count)s binding belongs to no worker: its machine has no disk",
        "%(count)s bindings belong to no worker: their machines have no disk",
        "count",
    ),
    mend=_(
        "The machine's next boot adds the record where registration is on. Otherwise add the worker, or remove the line."
    ),
    grave=False,
)


def sources() -> Iterator[Trouble]:
    """All of it."""
    reason = dnsmasq.not_seen()
    yield from many(RELOAD, [reason] if reason else [], Item)
    yield from many(
        HOMELESS,
        selectors.homeless(),
        lambda each: Item(f"{each[0]}: {each[2]} @ {each[1]}", _page(each[0])),
    )
    yield from many(STUCK, stuck(), _stuck)
    yield from many(
        ACCESS,
        access.differing(),
        lambda each: Item(each.words(), _access(each.worker_id)),
    )
    found = selectors.apart()
    yield from many(
        UNBOUND,
        list(found.unbound.items()),
        lambda pair: Item(f"{pair[1]} ({pair[0]})", _page(pair[1])),
    )
    yield from many(
        STRANGE,
        list(found.strange.items()),
        lambda pair: Item(f"{pair[1]} {pair[0]}"),
    )


def stuck() -> list[Disk]:
    """Disks under way on which nobody works."""
    run = settings.IPXE_LAYOUT.run
    return [
        disk
        for disk in selectors.under_way()[:LOOKED_AT]
        if not held(run, mark(disk.worker_id, disk.os))
    ]


def _stuck(disk: Disk) -> Item:
    words = f"{disk.worker_id}: {disk.os} @ {disk.agent}, {disk.status}"
    return Item(words, _page(disk.worker_id))


def _page(worker_id: str) -> str:
    return reverse("admin:workers_worker_change", args=[quote(worker_id)])


def _access(worker_id: str) -> str:
    return reverse("admin:workers_worker_access", args=[worker_id])
