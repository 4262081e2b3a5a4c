"""Data of documents as JSON knows it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def as_json(value: Any) -> Any:
    """Return data in which decimals are numbers that JSON has and that print alike."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list) else value
