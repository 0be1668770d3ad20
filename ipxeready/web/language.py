"""The switch of the language: it leads back to the very address where it was pressed."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.encoding import iri_to_uri
from django.utils.http import url_has_allowed_host_and_scheme
from django.views import i18n


def set_language(request: HttpRequest) -> HttpResponse:
    """Django's, without its look for a translated address: we have none, and it makes another one of a name that is no UTF-8."""
    response = i18n.set_language(request)
    back = request.POST.get("next", "")
    if response.has_header("Location") and url_has_allowed_host_and_scheme(
        back, {request.get_host()}, require_https=request.is_secure()
    ):
        response["Location"] = iri_to_uri(back)
    return response
