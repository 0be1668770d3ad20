"""Runtime settings: whether unknown MACs are registered."""

from __future__ import annotations

from django.conf import settings

from bootvars.adapters import AUTO_REGISTER
from bootvars.models import Setting
from ipxeready.actors import OPERATOR, Actor
from ipxeready.index import writing


def auto_register_enabled() -> bool:
    """settings.json beats the environment, which is only the start value."""
    row = Setting.objects.filter(pk=AUTO_REGISTER).first()
    if row is None:
        return bool(settings.IPXE.auto_register)
    return bool(row.value)


def auto_register_set(*, actor: Actor, enabled: bool) -> bool:
    """Switch zero-touch registration; it counts from the next request on."""
    actor.require(OPERATOR)
    with writing(actor=actor, op="settings.auto_register") as tx:
        tx.json("settings").put(AUTO_REGISTER, enabled)
        tx.log(enabled=enabled)
    return enabled
