"""Workers, their disks and their bindings as rows of the index."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.choices import AccessMode
from ipxeready.index.models import IndexedModel
from workers.choices import State


class Worker(IndexedModel):
    """A machine of state/workers.yml; `data` is its record as the file has it."""

    worker_id = models.CharField(_("worker"), max_length=63, primary_key=True)
    hostname = models.CharField(_("hostname"), max_length=63, db_index=True)
    arch = models.CharField(_("architecture"), max_length=32, default="x86_64")
    state = models.CharField(_("state"), max_length=16, choices=State, db_index=True)
    default_os = models.CharField(
        _("default system"), max_length=16, default="", db_index=True
    )
    menu_default = models.CharField(_("menu default"), max_length=32, default="")
    menu_timeout = models.BigIntegerField(_("menu timeout (ms)"), null=True)
    #: Empty: as the node of each target says.
    access = models.CharField(
        _("access"), max_length=8, choices=AccessMode.choices, default="", db_index=True
    )
    #: NN of a name worker-NN: the next one is the highest plus one.
    serial = models.BigIntegerField(null=True, db_index=True, editable=False)
    data = models.JSONField(default=dict, editable=False)

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        ordering = ("worker_id",)
        # Words are looked for in both; rows are wide, and an index is all that has to be read.
        indexes = [
            models.Index(fields=["worker_id", "hostname"], name="worker_by_words")
        ]

    def __str__(self) -> str:
        return self.worker_id


class Disk(IndexedModel):
    """A system disk of a worker; `status` is empty when it is there."""

    worker_id = models.CharField(_("worker"), max_length=63)
    position = models.IntegerField()
    os = models.CharField(_("system"), max_length=16)
    agent = models.CharField(_("node"), max_length=63)
    iqn = models.CharField("IQN", max_length=223)
    filename = models.CharField(_("image"), max_length=255)
    backing = models.CharField(_("backing store"), max_length=4096, default="")
    status = models.CharField(_("status"), max_length=16, default="", db_index=True)
    source = models.JSONField(_("made from"), default=dict)
    #: The access that its target was given last.
    access = models.CharField(_("access"), max_length=8, default=AccessMode.OFF)

    class Meta:
        verbose_name = _("disk")
        verbose_name_plural = _("disks")
        ordering = ("worker_id", "position")
        # Whose disks these are is what the filters of workers ask, and where the first one lies what they are ordered by.
        indexes = [
            models.Index(
                fields=["worker_id", "position", "agent"], name="disk_by_worker"
            ),
            models.Index(fields=["agent", "worker_id"], name="disk_by_agent"),
            models.Index(fields=["os", "worker_id"], name="disk_by_os"),
            models.Index(fields=["iqn", "agent", "worker_id"], name="disk_by_target"),
        ]


class Cd(IndexedModel):
    """The install CD attached to a worker."""

    worker_id = models.CharField(_("worker"), max_length=63, db_index=True)
    agent = models.CharField(_("node"), max_length=63, db_index=True)
    iqn = models.CharField("IQN", max_length=223)
    iso = models.CharField("ISO", max_length=255)
    backing = models.CharField(_("backing store"), max_length=4096, default="")
    #: The access that its target was given last.
    access = models.CharField(_("access"), max_length=8, default=AccessMode.OFF)

    class Meta:
        verbose_name = _("install CD")
        verbose_name_plural = _("install CDs")


class Binding(IndexedModel):
    """One MAC of a line of dhcp-hosts.conf and what dnsmasq makes of it."""

    mac = models.CharField("MAC", max_length=17)
    hostname = models.CharField(_("hostname"), max_length=255)
    ip = models.CharField("IP", max_length=45, default="")
    tags = models.JSONField(_("tags"), default=list)
    #: The line that counts for this MAC: the last one that dnsmasq does not drop.
    effective = models.BooleanField(default=True)
    #: The hostname stands on another line too: neither machine gets a disk.
    conflict = models.BooleanField(default=False)
    serial = models.BigIntegerField(null=True, db_index=True, editable=False)

    class Meta:
        verbose_name = _("binding")
        verbose_name_plural = _("bindings")
        indexes = [
            models.Index(fields=["mac", "hostname"], name="binding_by_mac"),
            models.Index(
                fields=["hostname", "effective", "mac"], name="binding_by_hostname"
            ),
        ]
