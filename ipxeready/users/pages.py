"""One's own account, and as an administrator anybody's: password, tokens, the end of all sessions."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from ipxeready.actors import ADMINISTRATOR, ROLES, VIEWER
from ipxeready.errors import ApplicationError
from ipxeready.users import selectors, services, tokens
from ipxeready.users.choices import Role
from ipxeready.users.models import Operator
from ipxeready.web.actors import actor_of
from ipxeready.web.forms import WholeNumberField
from ipxeready.web.pages import page, page_view
from ipxeready.web.words import in_words, refuse


class TokenForm(forms.Form):
    """What a new token is for, what it may do and how long; the service has the rules."""

    required_css_class = "required"

    name = forms.CharField(
        label=_("Name"),
        max_length=40,
        help_text=_("What it is for, such as the name of a script or a machine."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)
    days = WholeNumberField(
        label=_("Days"),
        required=False,
        min_value=1,
        max_value=tokens.LONGEST_DAYS,
        help_text=_("How long it holds. Empty: until it is revoked."),
    )

    def __init__(self, owner: Operator, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        weaker = ROLES[: ROLES.index(owner.role) + 1]
        choices = [(value, label) for value, label in Role.choices if value in weaker]
        self.fields["role"] = forms.ChoiceField(
            label=_("Role"),
            choices=choices,
            help_text=_("It never may more than its owner may at the time of its use."),
        )


def urls() -> list[URLPattern]:
    """The addresses of these pages, for the site's own list."""
    found = []
    for start, name in (
        ("account/", "account"),
        ("accounts/<str:username>/", "accounts"),
    ):
        for route, view, method in (
            ("", _account, "GET"),
            ("tokens/", _token_add, "POST"),
            ("tokens/<str:token_id>/revoke/", _token_revoke, "POST"),
            ("sessions/", _sessions, "POST"),
        ):
            # One's own account is one's own business, whatever the role; `_whose` looks at whose it is.
            guarded = page_view(
                view,
                change=VIEWER,
                methods=(method,),
                home=_home if method == "POST" else None,
            )
            shown = f"{name}{view.__name__}" if route else name
            found.append(path(f"{start}{route}", guarded, name=shown))
    return found


def _whose(request: HttpRequest, username: str | None) -> Operator:
    """The person that a page is about; others than oneself are for administrators."""
    own = str(request.user.get_username())
    if username is not None and username != own:
        actor_of(request).require(ADMINISTRATOR)
    return selectors.user_get(username or own)


def _address(username: str | None, page: str = "") -> str:
    if username is None:
        return reverse(f"admin:account{page}")
    return reverse(f"admin:accounts{page}", args=[username])


def _home(username: str | None = None, **_more: str) -> str:
    return _address(username)


def _account(request: HttpRequest, username: str | None = None) -> HttpResponse:
    return _page(request, _whose(request, username), username)


def _token_add(request: HttpRequest, username: str | None = None) -> HttpResponse:
    owner = _whose(request, username)
    form = TokenForm(owner, request.POST)
    if not form.is_valid():
        return _page(request, owner, username, form=form)
    try:
        made = tokens.token_create(
            actor=actor_of(request), username=owner.username, **form.cleaned_data
        )
    except ApplicationError as error:
        refuse(form, error)
        return _page(request, owner, username, form=form)
    # No redirect: it stands in this answer only, which nothing keeps.
    return _page(request, owner, username, made=made)


def _token_revoke(
    request: HttpRequest,
    token_id: str,
    username: str | None = None,
) -> HttpResponse:
    _whose(request, username)
    try:
        tokens.token_revoke(actor=actor_of(request), token_id=token_id)
    except ApplicationError as error:
        messages.error(request, in_words(error))
    else:
        messages.success(request, _t("The token was revoked."))
    return HttpResponseRedirect(_address(username))


def _sessions(request: HttpRequest, username: str | None = None) -> HttpResponse:
    owner = _whose(request, username)
    try:
        services.user_end_sessions(actor=actor_of(request), username=owner.username)
    except ApplicationError as error:
        messages.error(request, in_words(error))
    else:
        # One's own ends too: the next page is the login.
        messages.success(request, _t("All sessions have ended."))
    return HttpResponseRedirect(_address(username))


def _page(
    request: HttpRequest,
    owner: Operator,
    username: str | None,
    *,
    form: TokenForm | None = None,
    made: tokens.Made | None = None,
) -> HttpResponse:
    found = [
        {
            "token": token,
            "last_used": tokens.last_used(token.token_id),
            "revoke": reverse("admin:account_token_revoke", args=[token.token_id])
            if username is None
            else reverse(
                "admin:accounts_token_revoke", args=[username, token.token_id]
            ),
        }
        for token in selectors.tokens(owner.username)
    ]
    own = owner.username == request.user.get_username()
    return page(
        request,
        "users/account.html",
        {
            "owner": owner,
            "own": own,
            "others": username is not None,
            "tokens": found,
            "form": form or TokenForm(owner, initial={"role": owner.role}),
            "made": made,
            "add_url": _address(username, "_token_add"),
            "sessions_url": _address(username, "_sessions"),
        },
        title=_t("Account %(name)s") % {"name": owner.username},
        trail=[]
        if username is None
        else [
            (_t("Users"), reverse("admin:users_operator_changelist")),
            (
                owner.username,
                reverse("admin:users_operator_change", args=[owner.username]),
            ),
        ],
    )
