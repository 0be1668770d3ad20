"""Reading people."""

from __future__ import annotations

from django.db.models import QuerySet

from ipxeready.actors import ADMINISTRATOR
from ipxeready.errors import NotFound
from ipxeready.said import said
from ipxeready.users.models import Operator, Token


def users() -> QuerySet[Operator]:
    """Everybody, by name."""
    return Operator.objects.order_by("username")


def user_get(username: str) -> Operator:
    """The person with this name; NotFound when there is none."""
    found = Operator.objects.filter(pk=username).first()
    if found is None:
        raise NotFound(said("there is no user {username}", username=username))
    return found


def tokens(username: str | None = None) -> QuerySet[Token]:
    """Personal tokens by owner and name: all, or those of one person."""
    found = Token.objects.order_by("username", "name")
    return found if username is None else found.filter(username=username)


def token_get(token_id: str) -> Token:
    """The token with this id; NotFound when there is none."""
    found = Token.objects.filter(token_id=token_id).first()
    if found is None:
        raise NotFound(said("there is no token {token}", token=repr(token_id[:63])))
    return found


def other_administrators(username: str) -> QuerySet[Operator]:
    """Administrators that can log in, without this one."""
    return Operator.objects.filter(role=ADMINISTRATOR, is_active=True).exclude(
        pk=username
    )
