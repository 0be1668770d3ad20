"""Forms about workers; they hold no rule, the services do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from agents.choices import AccessMode
from ipxeready.storage.iqn import OSES
from workers import selectors
from workers.choices import MENU_DEFAULTS, DiskType
from workers.models import Worker

if TYPE_CHECKING:  # Django's classes take a parameter in their stubs only
    _ModelForm = forms.ModelForm[Worker]
else:
    _ModelForm = forms.ModelForm


def _capitals(form: forms.BaseForm) -> None:
    """Labels as Django writes those of model fields."""
    for field in form.fields.values():
        field.label = capfirst(field.label)


class WorkerForm(_ModelForm):
    """Identity of a new worker; MAC and default boot of one that is there."""

    mac = forms.CharField(label="MAC", max_length=100)
    hostname = forms.CharField(
        label=_("hostname"),
        required=False,
        help_text=_("Leave it empty to use the worker's id."),
    )
    default_os = forms.ChoiceField(label=_("default system"), required=False)
    menu_default = forms.ChoiceField(
        label=_("menu default"),
        required=False,
        choices=[("", "-"), *((item, item) for item in MENU_DEFAULTS)],
        help_text=_("What the menu chooses where no default system is set."),
    )
    menu_timeout = forms.IntegerField(
        label=_("menu timeout (ms)"),
        required=False,
        min_value=0,
        help_text=_("0 waits for a key for ever; empty is the site's value."),
    )

    class Meta:
        model = Worker
        fields = ("worker_id", "hostname", "default_os", "menu_default", "menu_timeout")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _capitals(self)
        worker = self.instance
        if worker._state.adding:
            return
        macs = selectors.macs_of(worker.hostname)
        if "mac" in self.fields:
            self.fields["mac"].initial = macs[0] if macs else ""
            # A worker whose binding was taken away by hand can still have its boot changed.
            self.fields["mac"].required = bool(macs)
        if "default_os" in self.fields:
            there = [
                disk.os for disk in selectors.disks_of(worker.pk) if not disk.status
            ]
            known = [worker.default_os] if worker.default_os else []
            names = [os for os in OSES if os in {*there, *known}]
            self.fields["default_os"].choices = [("", "-"), *((os, os) for os in names)]  # type: ignore[attr-defined]


class DiskForm(forms.Form):
    """A new system disk."""

    os = forms.ChoiceField(label=_("system"), choices=[(os, os) for os in OSES])
    type = forms.ChoiceField(label=_("made from"), choices=DiskType.choices)
    name = forms.CharField(
        label=_("master or image"),
        required=False,
        help_text=_(
            "The file's name on the node: for a clone, for an image that was kept and for one that is renamed."
        ),
    )
    size = forms.CharField(
        label=_("size"),
        required=False,
        help_text=_("For an empty disk: 40G, 512M, 1T or bytes."),
    )
    disk_agent = forms.ChoiceField(
        label=_("node"),
        required=False,
        help_text=_("Leave it empty to have the best one picked."),
    )
    set_default = forms.BooleanField(
        label=_("boot this system by default"), required=False, initial=True
    )

    def __init__(self, *args: Any, nodes: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _capitals(self)
        self.fields["disk_agent"].choices = [("", "-"), *((n, n) for n in nodes)]  # type: ignore[attr-defined]


class AccessForm(forms.Form):
    """Who may log in to a worker's targets."""

    access = forms.ChoiceField(
        label=_("access"),
        required=False,
        choices=[("", _("as the node of each target says")), *AccessMode.choices],
    )
    rotate = forms.BooleanField(
        label=_("make a new secret and send it to the nodes"), required=False
    )
    force = forms.BooleanField(
        label=_(
            "also where a connected machine could not come back after a break (it is not cut off now)"
        ),
        required=False,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _capitals(self)


class NodeAccessForm(forms.Form):
    """Who may log in to the targets of a node."""

    access = forms.ChoiceField(label=_("access"), choices=AccessMode.choices)
    force = forms.BooleanField(
        label=_(
            "also where a connected machine could not come back after a break (it is not cut off now)"
        ),
        required=False,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _capitals(self)


class RemovalForm(forms.Form):
    """How to delete."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _capitals(self)

    delete_file = forms.BooleanField(
        label=_("delete the image files too (they cannot be brought back)"),
        required=False,
    )
    ignore_missing_target = forms.BooleanField(
        label=_("go on where a target is missing on its node"), required=False
    )
    force = forms.BooleanField(
        label=_("cut off machines that are connected (they lose their disk at once)"),
        required=False,
    )
    forget = forms.BooleanField(
        label=_("take it off the ledger where its node does not answer"), required=False
    )
