"""The closed lists of a worker's values (contract.md section 2)."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ipxeready.storage.iqn import OSES

#: Item ids of menu.ipxe beside the systems; a test compares them with the file.
MENU_ITEMS = ("menu-diag", "menu-install", "config", "shell", "reboot", "exit")
MENU_DEFAULTS = (*OSES, *MENU_ITEMS)

CREATING = "creating"
DELETING = "deleting"


class State(models.TextChoices):
    """What a worker has: nothing, a disk, or an install CD."""

    REGISTERED = "registered", _("registered")
    READY = "ready", _("ready")
    INSTALLING = "installing", _("installing")


class DiskType(models.TextChoices):
    """Where a new disk's content comes from."""

    MASTER = "master", _("clone of a master")
    EMPTY = "empty", _("empty")
    EXISTING = "existing", _("an image that was kept")
    IMPORT = "import", _("another image of the node, renamed")
