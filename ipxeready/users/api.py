"""The API of personal tokens."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ipxeready.actors import ADMINISTRATOR, VIEWER
from ipxeready.errors import Invalid
from ipxeready.users import selectors, tokens
from ipxeready.users.serializers import (
    MadeTokenSerializer,
    TokenCreateSerializer,
    TokenSerializer,
    token_shown,
)
from ipxeready.web.serializers import no_body, strict_query
from ipxeready.web.views import ApiView


class TokenList(ApiView):
    """GET, POST /tokens."""

    serializer_class = TokenCreateSerializer
    #: One's own tokens are everybody's business; the services say whose are one's own.
    required_role = VIEWER

    @extend_schema(
        parameters=[OpenApiParameter("user", str)],
        responses=TokenSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """One's own tokens; administrators see everybody's, or those of `user`."""
        user = strict_query(request, {"user": None, "format": None})["user"]
        actor = self.actor
        if not actor.may(ADMINISTRATOR):
            if user not in (None, actor.name):
                actor.require(ADMINISTRATOR)
            user = actor.name
        elif user is not None:
            user = selectors.user_get(user.lower()).username
        return Response([token_shown(token) for token in selectors.tokens(user)])

    @extend_schema(request=TokenCreateSerializer, responses={201: MadeTokenSerializer})
    def post(self, request: Request) -> Response:
        """Make a token; the answer is the only place where it ever stands."""
        data = self.checked(TokenCreateSerializer)
        actor = self.actor
        user = (data.get("user") or "").lower()
        if not user and selectors.users().filter(pk=actor.name).exists():
            user = actor.name
        if not user:
            raise Invalid(
                f"{actor.shown} is no person: name the one whose token it is",
                field="user",
            )
        made = tokens.token_create(
            actor=actor,
            username=user,
            name=data["name"],
            role=data.get("role"),
            days=data.get("days"),
        )
        return Response({**token_shown(made.token), "token": made.text}, status=201)


class TokenDetail(ApiView):
    """DELETE /tokens/{id}."""

    required_role = VIEWER

    @extend_schema(responses={200: dict[str, str]})
    def delete(self, request: Request, token_id: str) -> Response:
        """Revoke a token: one's own, or as an administrator anybody's."""
        strict_query(request, {})
        no_body(request)
        gone = tokens.token_revoke(actor=self.actor, token_id=token_id)
        return Response({"deleted": gone})
