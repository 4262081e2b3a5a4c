"""Quantities are read exactly, or refused; canonical text reads back as the same amount."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail import quantities as q

AMOUNTS = st.integers(min_value=0, max_value=q.LARGEST)


def up(value: object) -> int:
    return q.parse_memory(value, "up")


def down(value: object) -> int:
    return q.parse_memory(value, "down")


@pytest.mark.parametrize(
    ("unit", "one"),
    [
        ("replicas too many", "1 replica too many"),
        ("extra values in a domain", "1 extra value in a domain"),
        ("replicas not admitted", "1 replica not admitted"),
        ("amount above the limit", "1 amount above the limit"),
    ],
)
def test_one_of_a_unit_is_singular(unit: str, one: str) -> None:
    assert q.counted(1, unit) == one
    assert q.counted(1200, unit) == f"1,200 {unit}"


def test_figures_are_rounded_in_one_way() -> None:
    assert [str(q.rounded(amount, 3_600_000)) for amount in (1799, 1800, 5400, 3_600_000)] == [
        "0.000", "0.001", "0.002", "1.000"
    ]  # fmt: skip


PARSERS: list[Callable[[Any], Any]] = [
    up,
    down,
    q.parse_cpu,
    q.parse_gpus,
    q.parse_fraction,
    q.parse_milli,
    q.parse_duration,
    q.parse_money,
    q.parse_date,
]

READ: list[tuple[Callable[[Any], Any], object, object]] = [
    (up, "80Gi", 81920),
    (up, "1Ti", 1048576),
    (up, "512Mi", 512),
    (up, "2G", 1908),
    (down, "2G", 1907),
    (up, 1, 1),
    (down, 1, 0),
    (up, 0, 0),
    (up, "1E", 953674316407),
    (up, "1Ei", 2**40),
    (up, "1.5Gi", 1536),
    (up, "1e9", 954),
    (q.parse_cpu, "500m", 500),
    (q.parse_cpu, 4, 4000),
    (q.parse_cpu, Decimal("2.5"), 2500),
    (q.parse_cpu, "4", 4000),
    (q.parse_gpus, Decimal("0.45"), 450),
    (q.parse_gpus, Decimal("0.450000"), 450),
    (q.parse_gpus, "450m", 450),
    (q.parse_fraction, 1, 1000),
    (q.parse_duration, "2h30m", 9_000_000),
    (q.parse_duration, "30m", 1_800_000),
    (q.parse_duration, "40ms", 40),
    (q.parse_duration, "1d", 86_400_000),
    (q.parse_duration, "1.5h", 5_400_000),
    (q.parse_duration, 30, 30_000),
    (q.parse_money, Decimal("24.50"), 24_500_000),
    (q.parse_date, "2026-12-31", datetime.date(2026, 12, 31)),
]

REFUSED: list[tuple[Callable[[Any], Any], object, str]] = [
    (up, "80GB", "DT1201"),
    (up, "512m", "DT1201"),
    (up, "80 Gi", "DT1201"),
    (up, "", "DT1201"),
    (up, True, "DT1201"),
    (up, None, "DT1201"),
    (up, [], "DT1201"),
    (up, "-1Gi", "DT1202"),
    (up, "99999Ei", "DT1202"),
    (up, "1e99", "DT1202"),
    (up, 10**80, "DT1202"),
    (q.parse_cpu, "0.0005", "DT1203"),
    (q.parse_cpu, "4k", "DT1201"),
    (q.parse_gpus, Decimal("0.4567"), "DT1203"),
    (q.parse_gpus, Decimal("1e-99999"), "DT1203"),
    (q.parse_gpus, Decimal("1e99999"), "DT1202"),
    (q.parse_gpus, Decimal("Infinity"), "DT1202"),
    (q.parse_gpus, Decimal("NaN"), "DT1202"),
    (q.parse_gpus, "१", "DT1201"),
    (q.parse_fraction, 0, "DT1202"),
    (q.parse_fraction, 2, "DT1202"),
    (q.parse_duration, "30m2h", "DT1201"),
    (q.parse_duration, "1h1h", "DT1201"),
    (q.parse_duration, "30", "DT1201"),
    (q.parse_duration, "-3h", "DT1202"),
    (q.parse_duration, "0.1ms", "DT1203"),
    (q.parse_duration, "9" * 30 + "d", "DT1202"),
    (q.parse_money, "24.50 EUR", "DT1201"),
    (q.parse_money, Decimal("0.0000001"), "DT1203"),
    (q.parse_date, "2026-02-30", "DT1201"),
    (q.parse_date, "2026-2-3", "DT1201"),
]


@pytest.mark.parametrize(("parse", "value", "amount"), READ)
def test_a_quantity_is_read_exactly(parse: Callable[[Any], Any], value: object, amount: object) -> None:
    assert parse(value) == amount


@pytest.mark.parametrize(("parse", "value", "code"), REFUSED)
def test_what_is_no_quantity_is_refused(parse: Callable[[Any], Any], value: object, code: str) -> None:
    with pytest.raises(q.QuantityError) as caught:
        parse(value)
    assert caught.value.code == code
    assert len(caught.value.message) < 200


def test_a_wrong_unit_of_memory_gets_a_suggestion() -> None:
    with pytest.raises(q.QuantityError) as caught:
        up("80GB")
    assert caught.value.hint == "write 80Gi or 80G"


@given(AMOUNTS)
def test_canonical_text_reads_back_as_the_same_amount(amount: int) -> None:
    assert up(q.format_memory(amount)) == down(q.format_memory(amount)) == amount
    assert q.parse_cpu(q.format_cpu(amount)) == amount
    assert q.parse_gpus(q.format_milli(amount)) == amount
    assert q.parse_duration(q.format_duration(amount)) == amount
    assert q.parse_money(q.format_money(amount)) == amount


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (q.format_milli(1_912_375), "1912.375"),
        (q.format_milli(0), "0"),
        (q.format_milli(-500), "-0.5"),
        (q.format_memory(81920), "80Gi"),
        (q.format_memory(0), "0"),
        (q.format_memory(1025), "1025Mi"),
        (q.format_cpu(2500), "2.5"),
        (q.format_duration(9_000_000), "2h30m"),
        (q.format_duration(0), "0s"),
        (q.format_money(24_500_000), "24.5"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert text == canonical


@given(st.fractions(min_value=0, max_value=10**6))
def test_memory_rounds_requests_up_and_capacities_down(mebibytes: Any) -> None:
    size = int(mebibytes * 2**20)
    assert down(size) * 2**20 <= size <= up(size) * 2**20
    assert up(size) - down(size) <= 1


@given(st.text(max_size=80) | st.integers() | st.decimals() | st.booleans() | st.none() | st.lists(st.integers()))
def test_anything_else_is_refused_and_never_breaks(value: object) -> None:
    for parse in PARSERS:
        with suppress(q.QuantityError):
            parse(value)
