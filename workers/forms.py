"""Forms about workers; they hold no rule, the services do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from agents.choices import AccessMode
from agents.offers import Offer
from ipxeready.storage.iqn import OSES
from ipxeready.storage.sizes import format_size
from ipxeready.web.forms import BarringSelect, WholeNumberField, choice_words
from ipxeready.web.text import cut, visible
from ipxeready.web.words import in_words
from workers.choices import MENU_DEFAULTS

#: A choice of one thing that lies on nodes: words of a group, and its choices.
Groups = list[tuple[Any, list[tuple[str, Any]]]]
#: What lies on one node, in one choice; whoever has more types the name.
_OFFERED = 300

NONE = "none"
EMPTY = "empty"
MASTER = "master"
IMAGE = "image"


class WorkersForm(forms.Form):
    """Labels as Django writes those of model fields."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.label = capfirst(field.label)


def access_choice(*, required: bool) -> forms.ChoiceField:
    """Who may log in; where it need not be said, also what the node of each target says."""
    as_node = [] if required else [("", _("as the node of each target says"))]
    return forms.ChoiceField(
        label=_("access"), required=required, choices=[*as_node, *AccessMode.choices]
    )


def although_connected() -> forms.BooleanField:
    """Access that is set whoever is connected."""
    return forms.BooleanField(
        label=_(
            "also where a connected machine could not come back after a break (it is not cut off now)"
        ),
        required=False,
    )


def files_too() -> forms.BooleanField:
    """A deletion with the images."""
    return forms.BooleanField(
        label=_("delete the image files too (they cannot be brought back)"),
        required=False,
    )


def missing_target() -> forms.BooleanField:
    """A deletion of what is gone already."""
    return forms.BooleanField(
        label=_("go on where a target is missing on its node"), required=False
    )


def cutting_off() -> forms.BooleanField:
    """A deletion of what is in use."""
    return forms.BooleanField(
        label=_("cut off machines that are connected (they lose their disk at once)"),
        required=False,
    )


def forgetting() -> forms.BooleanField:
    """A deletion that need not reach the node."""
    return forms.BooleanField(
        label=_("take it off the ledger where its node does not answer"), required=False
    )


class _Groups(BarringSelect):
    """A choice in groups; a group without choices says why in its words and cannot be chosen from."""

    def optgroups(
        self, name: str, value: list[str], attrs: dict[str, Any] | None = None
    ) -> list[Any]:
        """What was sent stays chosen, though no node offers it (any more)."""
        found = super().optgroups(name, value, attrs)
        known = {
            str(option["value"]) for _name, options, _at in found for option in options
        }
        for sent in value:
            if sent and sent not in known:
                option = self.create_option(name, sent, visible(sent), True, len(found))
                found.append((None, [option], len(found)))
        return found


def _offered(label: Any, **more: Any) -> forms.CharField:
    """A field whose choices nodes offer: what comes is checked by the service, not against them."""
    return forms.CharField(label=label, widget=_Groups(), **more)


def _named(files: Sequence[Any], agent: str, *, bar: bool) -> list[tuple[str, Any]]:
    """Files as choices; with `bar` what has a problem is shown with it and cannot be chosen."""
    return [
        (f"{agent}/{file['name']}", _words_of(file, bar)) for file in files[:_OFFERED]
    ]


def _words_of(file: Any, bar: bool) -> str:
    words = f"{cut(visible(file['name']), 80)} ({format_size(file['size'])})"
    return choice_words(words, file.get("problem") if bar else None)


def groups_of(offers: Sequence[Offer], kind: str, *, anywhere: bool) -> Groups:
    """What the nodes have of `kind` (masters, images, isos), by node; with `anywhere` first by name alone.

    A node that offers nothing says why in its heading. A master from which no disk can be cloned (qcow2 inside) says so
    and cannot be chosen; an image can: a kept disk is taken back whatever its machine wrote into it.
    """
    bar = kind == "masters"
    found: Groups = [("", [("", "-")])]
    by_name: dict[str, Any] = {}
    for offer in offers:
        for file in getattr(offer, kind):
            held = by_name.setdefault(file["name"], file)
            if held.get("problem") and not file.get("problem"):
                by_name[file["name"]] = file  # one node that can is enough
    if anywhere and by_name:
        files = [by_name[name] for name in sorted(by_name)]
        found.append(
            (_("any node: the best one is picked"), _named(files, "", bar=bar))
        )
    for offer in offers:
        files = sorted(getattr(offer, kind), key=lambda file: str(file["name"]))
        reason = offer.no_cd if kind == "isos" else offer.no_disk
        node = visible(offer.agent)
        if reason and not files:
            found.append((f"{node}: {cut(visible(in_words(reason)), 120)}", []))
        elif reason:
            found.append((f"{node}: {cut(visible(in_words(reason)), 120)}", _named(files, offer.agent, bar=bar)))  # fmt: skip
        elif files:
            found.append((node, _named(files, offer.agent, bar=bar)))
    return found


def place_of(value: str) -> tuple[str, str]:
    """Node (empty: any) and name of what was chosen; a name alone is on any node."""
    agent, slash, name = value.strip().partition("/")
    return (agent, name) if slash else ("", agent)


class IdentityForm(WorkersForm):
    """Step one of a new worker."""

    worker_id = forms.CharField(label=_("id"), max_length=63)
    mac = forms.CharField(
        label="MAC",
        max_length=100,
        help_text=_("As the firmware shows it; with colons, hyphens or neither."),
    )
    hostname = forms.CharField(
        label=_("hostname"),
        required=False,
        help_text=_("Leave it empty to use the worker's id."),
    )


class MacForm(WorkersForm):
    """The MAC of a worker."""

    mac = forms.CharField(label="MAC", max_length=100)


class BootForm(WorkersForm):
    """What a worker boots."""

    default_os = forms.ChoiceField(label=_("default system"), required=False)
    menu_default = forms.ChoiceField(
        label=_("menu default"),
        required=False,
        choices=[("", "-"), *((item, item) for item in MENU_DEFAULTS)],
        help_text=_("What the menu chooses where no default system is set."),
    )
    menu_timeout = WholeNumberField(
        label=_("menu timeout (ms)"),
        required=False,
        min_value=0,
        help_text=_("0 waits for a key for ever; empty is the site's value."),
    )

    def __init__(self, *args: Any, systems: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "-"), *((os, os) for os in OSES if os in systems)]
        self.fields["default_os"].choices = choices  # type: ignore[attr-defined]


class DiskForm(WorkersForm):
    """A new system disk; for a new worker also none at all."""

    type = forms.ChoiceField(label=_("content"), widget=forms.RadioSelect)
    os = forms.ChoiceField(label=_("system"), choices=[(os, os) for os in OSES])
    size = forms.CharField(
        label=_("size"),
        required=False,
        help_text=_("Of an empty disk: 40G, 512M, 1T or bytes."),
    )
    master = _offered(_("master"), required=False)
    image = _offered(
        _("image on a node"),
        required=False,
        help_text=_(
            "A disk that was kept is taken as it is; another image is renamed to be this disk."
        ),
    )
    disk_agent = forms.ChoiceField(
        label=_("node"),
        required=False,
        help_text=_("For an empty disk, and for a master that may lie on any node."),
    )
    set_default = forms.BooleanField(
        label=_("boot this system by default"), required=False, initial=True
    )

    def __init__(
        self,
        *args: Any,
        offers: Sequence[Offer],
        best: str | None,
        may_be_none: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        kinds: list[tuple[str, Any]] = [
            (MASTER, _("clone of a master")),
            (EMPTY, _("empty")),
            (IMAGE, _("an image that lies on a node")),
        ]
        if may_be_none:
            kinds.insert(0, (NONE, _("no disk yet")))
        self.fields["type"].choices = kinds  # type: ignore[attr-defined]
        self.fields["type"].initial = NONE if may_be_none else MASTER
        masters = groups_of(offers, "masters", anywhere=True)
        images = groups_of(offers, "images", anywhere=False)
        self.fields["master"].widget.choices = masters
        self.fields["image"].widget.choices = images
        # What is chosen here need not be what the page offered: a node may have come meanwhile.
        nodes = [offer.agent for offer in offers]
        self.fields["disk_agent"].choices = [  # type: ignore[attr-defined]
            ("", _("the scheduler picks: %(node)s now") % {"node": best} if best else _("the scheduler picks")),
            *((name, cut(visible(name), 80)) for name in nodes),
        ]  # fmt: skip


class GrowForm(WorkersForm):
    """How large a disk becomes."""

    size = forms.CharField(
        label=_("new size"),
        help_text=_("The whole, such as 80G. A disk never becomes smaller."),
    )


class ResetForm(WorkersForm):
    """What a disk is reset to."""

    master = _offered(_("master"), required=False)

    def __init__(self, *args: Any, offers: Sequence[Offer], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found: list[tuple[str, Any]] = [("", _("the one that it was made from"))]
        for offer in offers:
            found += [
                (name.partition("/")[2], words)
                for name, words in _named(offer.masters, "", bar=True)
            ]
        self.fields["master"].widget.choices = found


class CdForm(WorkersForm):
    """Which ISO becomes the install CD."""

    iso = _offered("ISO")

    def __init__(self, *args: Any, offers: Sequence[Offer], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        isos = groups_of(offers, "isos", anywhere=True)
        self.fields["iso"].widget.choices = isos


class AccessForm(WorkersForm):
    """Who may log in to a worker's targets."""

    access = access_choice(required=False)
    rotate = forms.BooleanField(
        label=_("make a new secret and send it to the nodes"), required=False
    )
    force = although_connected()


class NodeAccessForm(WorkersForm):
    """Who may log in to the targets of a node."""

    access = access_choice(required=True)
    force = although_connected()


class CdRemovalForm(WorkersForm):
    """How to detach a CD."""

    force = cutting_off()
    forget = forgetting()


class RemovalForm(WorkersForm):
    """How to delete."""

    delete_file = files_too()
    ignore_missing_target = missing_target()
    force = cutting_off()
    forget = forgetting()
