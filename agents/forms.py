"""The forms of a storage node; they hold no rule, the services do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from agents.choices import AccessMode
from agents.protocol.access import ACL, OFF
from agents.protocol.answers import Master
from ipxeready.web.forms import BarringSelect, choice_words


class TagsField(forms.CharField):
    """Words with blanks or commas between them."""

    def prepare_value(self, value: Any) -> Any:
        """A list as words."""
        return " ".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """Words as a list."""
        return str(value or "").replace(",", " ").split()

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare the words."""
        return bool(self.to_python(data) != list(initial or []))


class TokenField(forms.CharField):
    """A token: only ever written, never shown."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.PasswordInput(
            render_value=False, attrs={"autocomplete": "new-password"}
        )
        super().__init__(
            label=_("Token"), required=False, max_length=4096, widget=widget, **kwargs
        )


class ProbeForm(forms.Form):
    """First step: where a node is."""

    base_url = forms.CharField(
        label=_("Address"),
        max_length=1024,
        widget=forms.TextInput(
            attrs={"inputmode": "url", "placeholder": "http://192.0.2.10:4840"}
        ),
        help_text=_("http://host:4840 of the node's agent."),
    )
    token = TokenField(
        help_text=_(
            "IPXE_AGENT_TOKEN of the node: there, `cat config/agent-token` shows it."
        )
    )


class RegisterForm(forms.Form):
    """Second step: what the node is to us."""

    id = forms.CharField(
        label=_("Name"),
        max_length=63,
        help_text=_("Letters, digits, dots, hyphens; it cannot be changed later."),
    )
    iscsi_server = forms.CharField(
        label=_("Address for iSCSI"),
        required=False,
        max_length=255,
        help_text=_("As machines reach it; empty means the host above."),
    )
    role_disk = forms.BooleanField(label=_("takes disks"), required=False)
    role_cd = forms.BooleanField(label=_("takes install CDs"), required=False)
    tags = TagsField(
        label=_("Tags"),
        required=False,
        help_text=_(
            "Words with blanks between them; lio or stgt tells the target system."
        ),
    )
    enabled = forms.BooleanField(
        label=_("enabled: new disks may go there"), required=False, initial=True
    )
    access = forms.ChoiceField(
        label=_("Access"),
        choices=AccessMode.choices,
        initial=ACL,
        help_text=_(
            "Who may log in to targets that are made from now on, for workers without a setting "
            "of their own. Those that are there keep theirs until you apply it to them."
        ),
    )


class EditForm(RegisterForm):
    """What is registered of a node; its name stays."""

    base_url = forms.CharField(
        label=_("Address"),
        max_length=1024,
        help_text=_(
            "http://host:4840 of the node's agent. Another address needs the token again."
        ),
    )
    token = TokenField(help_text=_("Leave it empty to keep the present one."))
    record_digest = forms.CharField(required=False, widget=forms.HiddenInput)

    field_order = ("base_url", "token")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["id"]


EMPTY, MASTER = "empty", "master"


class DiskForm(forms.Form):
    """A disk that belongs to no worker yet."""

    name = forms.CharField(
        label=_("Name"),
        max_length=255,
        help_text=_(
            "hostname.system, as pc-12.debian: a worker of that name can take it over later. The target and the image are named after it."
        ),
    )
    source = forms.ChoiceField(
        label=_("Made from"),
        choices=[(MASTER, _("a master of this node")), (EMPTY, _("nothing: empty"))],
        widget=forms.RadioSelect,
        initial=EMPTY,
    )
    master = forms.ChoiceField(label=_("Master"), required=False, widget=BarringSelect)
    size = forms.CharField(
        label=_("Size of an empty disk"),
        required=False,
        max_length=32,
        widget=forms.TextInput(attrs={"placeholder": "40G"}),
        help_text=_("As 40G, 512M or 1T."),
    )

    def __init__(self, *args: Any, masters: Sequence[Master], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["master"].choices = [  # type: ignore[attr-defined]
            ("", _("choose one")),
            *(
                (each["name"], choice_words(each["name"], each.get("problem")))
                for each in masters
            ),
        ]
        if not all(each.get("problem") for each in masters):
            self.fields["source"].initial = MASTER

    def clean(self) -> dict[str, Any]:
        """One of the two, as the source says."""
        data = super().clean() or {}
        if data.get("source") == MASTER and not data.get("master"):
            self.add_error("master", _("Choose a master, or make an empty disk."))
        if data.get("source") == EMPTY and not data.get("size"):
            self.add_error("size", _("Say how large the empty disk is, as 40G."))
        return data


class CdForm(forms.Form):
    """An ISO of the node as a CD."""

    iso = forms.ChoiceField(label=_("ISO"))
    name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=255,
        help_text=_(
            "Empty: the ISO's own name, for all machines. Or hostname.windows.iso for one machine."
        ),
    )

    def __init__(self, *args: Any, isos: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["iso"].choices = [(name, name) for name in isos]  # type: ignore[attr-defined]


class LunDeleteForm(forms.Form):
    """What goes with a target."""

    delete_file = forms.BooleanField(
        label=_("delete the image too: its content cannot be brought back"),
        required=False,
    )
    force = forms.BooleanField(
        label=_("cut off who is connected"),
        required=False,
        help_text=_("Their system loses its disk while it runs."),
    )

    def __init__(self, *args: Any, cd: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if cd:  # an ISO always stays
            del self.fields["delete_file"]


class LunAccessForm(forms.Form):
    """Who may log in to a target that is nobody's."""

    access = forms.ChoiceField(
        label=_("Access"),
        choices=[each for each in AccessMode.choices if each[0] in (OFF, ACL)],
        widget=forms.RadioSelect,
    )
    force = forms.BooleanField(
        label=_("even where a machine that is connected could not come back"),
        required=False,
        help_text=_("No connection is cut by it; one that breaks cannot be renewed."),
    )


class ConfirmForm(forms.Form):
    """A question with a yes only."""
