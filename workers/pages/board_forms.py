"""The forms of the board; they hold no rule, the services do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from ipxeready.storage.iqn import OSES
from ipxeready.storage.sizes import format_size
from ipxeready.web.forms import WholeNumberField
from ipxeready.web.text import cut, visible
from workers.choices import MENU_DEFAULTS, DiskType, State
from workers.forms import (
    WorkersForm,
    access_choice,
    although_connected,
    cutting_off,
    files_too,
    forgetting,
    missing_target,
)

#: Leaves a value as it is.
KEEP = "keep"
_LABEL = 80
_SYSTEMS = [(os, os) for os in OSES]


class _Form(WorkersForm):
    """`FIRST` is what the form says before anybody filled it in."""

    FIRST: ClassVar[dict[str, str]] = {}


class FilterForm(_Form):
    """Which workers the board lists."""

    search = forms.CharField(label=_("search"), required=False)
    state = forms.ChoiceField(
        label=_("state"), required=False, choices=[("", "-"), *State.choices]
    )
    os = forms.ChoiceField(
        label=_("system"), required=False, choices=[("", "-"), *_SYSTEMS]
    )
    agent = forms.ChoiceField(label=_("node"), required=False)
    has_disk = forms.ChoiceField(
        label=_("disk"),
        required=False,
        choices=[
            ("", "-"),
            ("false", _("without a disk")),
            ("true", _("with a disk")),
        ],
    )

    def __init__(self, *args: Any, nodes: list[str], **kwargs: Any) -> None:
        # The other form of the page has fields of the same names.
        super().__init__(*args, auto_id="filter_%s", **kwargs)
        self.fields["agent"].choices = [("", "-"), *((n, label(n)) for n in nodes)]  # type: ignore[attr-defined]


class DisksForm(_Form):
    """What disk each of the chosen gets."""

    FIRST: ClassVar[dict[str, str]] = {"os": OSES[0], "type": DiskType.MASTER.value}

    os = forms.ChoiceField(label=_("system"), choices=_SYSTEMS)
    type = forms.ChoiceField(
        label=_("made from"),
        choices=[
            (DiskType.MASTER.value, DiskType.MASTER.label),
            (DiskType.EMPTY.value, DiskType.EMPTY.label),
            (DiskType.EXISTING.value, _("the image that was kept of each")),
        ],
    )
    name = forms.CharField(label=_("master"), required=False, widget=forms.Select)
    size = forms.CharField(
        label=_("size"),
        required=False,
        help_text=_("For an empty disk: 40G, 512M, 1T or bytes."),
    )

    def offer(self, masters: Mapping[str, int], first: Any) -> None:
        """Let these masters be chosen, under a first line that chooses none."""
        self.fields["name"].widget.choices = [
            ("", first),
            *((name, master_label(name, size)) for name, size in masters.items()),
        ]

    def what(self) -> dict[str, Any]:
        """What the services take: fields that do not go with the type are left out."""
        data = self.cleaned_data
        return {
            "type": data["type"],
            "os": data["os"],
            "name": data["name"] or None if data["type"] == DiskType.MASTER else None,
            "size": data["size"] or None if data["type"] == DiskType.EMPTY else None,
        }


class BootsForm(_Form):
    """What the chosen boot."""

    FIRST: ClassVar[dict[str, str]] = {"default_os": KEEP, "menu_default": KEEP}

    default_os = forms.ChoiceField(
        label=_("default system"),
        required=False,
        choices=[(KEEP, _("as it is")), ("", _("none")), *_SYSTEMS],
    )
    menu_default = forms.ChoiceField(
        label=_("menu default"),
        required=False,
        choices=[
            (KEEP, _("as it is")),
            ("", _("none")),
            *((item, item) for item in MENU_DEFAULTS),
        ],
    )
    menu_timeout = WholeNumberField(
        label=_("menu timeout (ms)"),
        required=False,
        min_value=0,
        help_text=_("0 waits for a key for ever; empty leaves it as it is."),
    )
    clear_timeout = forms.BooleanField(
        label=_("take the menu timeout away: the site's value counts"), required=False
    )

    def boot(self) -> dict[str, Any]:
        """What is to be set; None clears."""
        data = self.cleaned_data
        found = {
            name: data[field] or None
            for field, name in (("default_os", "os"), ("menu_default", "menu_default"))
            if data[field] != KEEP
        }
        if data["clear_timeout"]:
            found["menu_timeout"] = None
        elif data["menu_timeout"] is not None:
            found["menu_timeout"] = data["menu_timeout"]
        return found


class ResetsForm(_Form):
    """Which disks of the chosen get the content of their master again."""

    FIRST: ClassVar[dict[str, str]] = {"os": OSES[0]}

    os = forms.ChoiceField(label=_("system"), choices=_SYSTEMS)
    master = forms.CharField(
        label=_("master"),
        required=False,
        help_text=_("Empty: the master that each disk is a clone of."),
    )


class AccessesForm(_Form):
    """Who may log in to the targets of the chosen."""

    access = access_choice(required=False)
    force = although_connected()


class RemovalsForm(_Form):
    """How the chosen are deleted."""

    delete_disk = files_too()
    ignore_missing_target = missing_target()
    force = cutting_off()
    forget = forgetting()


def label(name: str) -> str:
    """A name as an option shows it."""
    return cut(visible(name), _LABEL)


def master_label(name: str, size: int) -> str:
    """A master as an option shows it."""
    return f"{label(name)} ({format_size(size)})"
