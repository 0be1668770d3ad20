"""The forms of a node's images; they hold no rule, the services do."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from agents.protocol.filenames import UPLOAD_SUFFIXES


class UploadForm(forms.Form):
    """A file for a node. The name and the checksum stand before the file, which may take long."""

    prefix = "upload"

    name = forms.CharField(
        label=_("Name on the node"),
        required=False,
        help_text=_(
            "Empty: the file's own. A master has _tpl_ in its name, as win11_tpl_1.img."
        ),
    )
    sha256 = forms.CharField(
        label=_("SHA-256"),
        required=False,
        help_text=_(
            "What it must be, if you know it. The node reads what is on its disk and tells it in any case."
        ),
    )
    file = forms.FileField(
        label=_("File"),
        widget=forms.FileInput(attrs={"accept": ",".join(UPLOAD_SUFFIXES)}),
        help_text=_(
            "An image (.img), an ISO, or .qcow2, .vhdx, .vhd, .vmdk, .raw to be converted."
        ),
    )


class ConvertForm(forms.Form):
    """An image from a file of another format."""

    prefix = "convert"

    source = forms.ChoiceField(label=_("From"))
    name = forms.CharField(
        label=_("New image"),
        help_text=_(
            "A master has _tpl_ in its name, as win11_tpl_1.img; a disk is imported under its worker later."
        ),
    )

    def __init__(self, *args: Any, sources: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["source"].choices = [(name, name) for name in sources]  # type: ignore[attr-defined]


class ImageDeleteForm(forms.Form):
    """The question before a file goes."""

    master = forms.BooleanField(
        label=_("it is a master, and no new disk will be cloned from it"),
    )

    def __init__(self, *args: Any, is_master: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_master:
            del self.fields["master"]
