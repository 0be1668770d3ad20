"""Rules for names and password hashes of people."""

from __future__ import annotations

import re

from django.contrib.auth.hashers import identify_hasher
from django.contrib.auth.password_validation import MinimumLengthValidator
from django.utils.translation import ngettext

from ipxeready.actors import ROLES
from ipxeready.errors import Invalid
from ipxeready.said import said

#: Names that the audit gives to callers who are no people.
RESERVED = frozenset({"token", "system", "firmware", "anonymous"})

_TOKEN_NAME = re.compile(r"[^\W_][\w .-]{0,39}")
_USERNAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class LengthValidator(MinimumLengthValidator):
    """Django's; but Django 5.2 reworded its refusal, and has no Chinese for the new words."""

    def get_error_message(self) -> str:
        """The same English, from our catalogue."""
        return ngettext(
            "This password is too short. It must contain at least %(count)s character.",
            "This password is too short. It must contain at least %(count)s characters.",
            self.min_length,
        ) % {"count": self.min_length}


def check_username(text: str) -> str:
    """The name in lower case; Invalid when it breaks the rule."""
    name = text.strip().lower()
    if not _USERNAME.fullmatch(name):
        raise Invalid(
            said(
                "must be 1 to 63 of a-z, 0-9, dot, underscore, hyphen, and start with a "
                "letter or digit"
            ),
            field="username",
        )
    return name


def check_role(text: str) -> str:
    """The role; Invalid when there is no such role."""
    if text not in ROLES:
        raise Invalid(
            said("must be one of {choices}", choices=", ".join(ROLES)), field="role"
        )
    return text


def check_token_name(text: str) -> str:
    """The name without blanks around it; Invalid when it breaks the rule."""
    name = text.strip()
    if not _TOKEN_NAME.fullmatch(name):
        raise Invalid(
            said(
                "must be 1 to 40 letters, digits, blanks, dots, underscores or hyphens, and "
                "start with a letter or digit"
            ),
            field="name",
        )
    return name


def is_password_hash(text: object) -> bool:
    """Whether this is a hash that a password can be checked against."""
    if not isinstance(text, str):
        return False
    try:
        # What decodes can be compared with; a cut one would fail at each login.
        identify_hasher(text).decode(text)
    except (ValueError, AssertionError):
        return False
    return True
