"""Jobs as the schema describes them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from ipxeready.storage.jobs import BYTES, ITEMS, STATES


class ListedJobSerializer(serializers.Serializer[Any]):
    """A job in a list."""

    id = serializers.CharField()
    kind = serializers.CharField(help_text="What is done, in the words of the audit.")
    by = serializers.CharField(help_text="Who asked for it.")
    about = serializers.DictField(help_text="What it is about.")
    state = serializers.ChoiceField(choices=STATES)
    unit = serializers.ChoiceField(choices=(BYTES, ITEMS))
    done = serializers.IntegerField()
    total = serializers.IntegerField(allow_null=True)
    created = serializers.DateTimeField()
    started = serializers.DateTimeField(allow_null=True)
    ended = serializers.DateTimeField(allow_null=True)
    error = serializers.DictField(
        allow_null=True, help_text="`{status, detail}`, as the request would have said."
    )
    cancelling = serializers.BooleanField(
        help_text="It was asked to end and has not yet."
    )


class JobSerializer(ListedJobSerializer):
    """A job with its result."""

    result = serializers.JSONField(
        allow_null=True, help_text="What the request would have answered."
    )
