"""Unknown fields and parameters are refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import QueryDict
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.test import APIClient, APIRequestFactory

from ipxeready.errors import Invalid
from ipxeready.web.pagination import whole_number
from ipxeready.web.serializers import StrictSerializer, strict_query


class Input(StrictSerializer):
    name = serializers.CharField()
    size = serializers.IntegerField(required=False)
    made = serializers.CharField(read_only=True)


def query(text: str) -> Request:
    return Request(APIRequestFactory().get(f"/x?{text}"))


def test_known_fields_pass() -> None:
    bound = Input(data={"name": "a", "size": 3})
    assert bound.is_valid()
    assert bound.validated_data == {"name": "a", "size": 3}


@pytest.mark.parametrize("field", ["nmae", "made", ""])
def test_an_unknown_field_is_named(field: str) -> None:
    bound = Input(data={"name": "a", field: 1})
    assert not bound.is_valid()
    assert list(bound.errors) == [field]
    assert "known are: name, size" in str(bound.errors[field])


def test_a_form_may_carry_its_csrf_token() -> None:
    assert Input(data=QueryDict("name=a&csrfmiddlewaretoken=x")).is_valid()
    assert not Input(data=QueryDict("name=a&csrftoken=x")).is_valid()


@pytest.mark.parametrize("data", [[], "text", 3, None])
def test_a_body_that_is_no_object_is_refused(data: Any) -> None:
    assert not Input(data=data).is_valid()


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("1", True), ("false", False), ("0", False), ("TRUE", True)],
)
def test_a_flag_is_true_false_1_or_0(text: str, value: bool) -> None:
    assert strict_query(query(f"force={text}"), {"force": False}) == {"force": value}


@pytest.mark.parametrize("text", ["yes", "", "2", "on", "tru", "%E2%91%A0"])
def test_any_other_flag_is_refused_by_name(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        strict_query(query(f"force={text}"), {"force": False})
    assert caught.value.field == "force"


def test_defaults_fill_what_is_not_given() -> None:
    allowed = {"iqn": None, "delete_file": True, "kind": "x"}
    assert strict_query(query(""), allowed) == allowed


@pytest.mark.parametrize("text", ["delete_fil=1", "delete_file=1&delete_file=0"])
def test_unknown_and_repeated_parameters_are_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        strict_query(query(text), {"delete_file": False})
    assert caught.value.field in ("delete_fil", "delete_file")


@pytest.mark.parametrize("text", ["-1", "1.0", "", "x", "99", "１"])
def test_a_number_out_of_its_range_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        whole_number(query(f"limit={text}"), "limit", 1, 50)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[" * 100_000, "JSON parse error"),
        (b'{"a":' * 100_000, "JSON parse error"),
        (b'{"enabled": true, "enabled": false}', '"enabled\\" is given twice'),
        (b'{"enabled": {"a": 1, "a": 2}}', '"a\\" is given twice'),
        (b'{"enabled": NaN}', "NaN"),
        (b'{"enabled": 1e999}', "too large"),
        (b"\xff\xfe", "JSON parse error"),
    ],
)
@pytest.mark.parametrize("charset", ["", "; charset=bogus", "; charset=utf-16"])
def test_a_body_that_json_does_not_know_is_a_400(
    api: APIClient, body: bytes, words: str, charset: str
) -> None:
    api.raise_request_exception = False
    answer = api.generic(
        "PUT", "/settings/auto-register", body, f"application/json{charset}"
    )
    assert answer.status_code == 400
    assert words in answer.content.decode()
    assert api.get("/settings/auto-register").json() == {"enabled": True}
