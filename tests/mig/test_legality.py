"""Layouts that do not exist are refused, each for its own reason."""

import pickle

import pytest

from dovetail.catalogue import geometries
from dovetail.mig import Instance, arrange, fits, legal, parse_instance

ILLEGAL = [
    ("A100-40GB", {"3g.20gb": 2, "1g.5gb": 1}),
    ("H100-80GB", {"3g.40gb": 2, "1g.10gb": 1}),
    ("A100-40GB", {"1g.10gb": 7}),
    ("A100-80GB", {"3g.20gb": 1}),
    ("A100-80GB", {"2g.20gb": 2, "3g.20gb": 1}),
    ("A30-24GB", {"3g.24gb": 1}),
    ("A30-24GB", {"1g.6gb+me": 1, "2g.12gb+me": 1}),
    ("A100-80GB", {"7g.79gb": 1}),
    ("A100-80GB", {"1g.10gb+me": 2}),
    ("H100-94GB-NVL", {"1g.24gb": 5}),
    ("RTXPRO6000-96GB", {"1g.24gb+me.all": 1, "1g.24gb": 1}),
    ("RTXPRO6000-96GB", {"1g.24gb": 5}),
    ("RTXPRO5000-48GB", {"1g.24gb": 1}),
    ("H100-80GB", {"4g.40gb": 2}),
]

MISPLACED = [
    ("H100-80GB", ["3g.40gb@0", "1g.10gb@3"], "3g.40gb@0 and 1g.10gb@3 overlap"),
    ("H100-80GB", ["3g.40gb@2"], "cannot start at 2"),
    ("H100-80GB", ["1g.10gb@7"], "cannot start at 7"),
    ("H100-80GB", ["1g.5gb@0"], "no profile 1g.5gb"),
    ("H100-80GB", ["3g.40gb@4", "1g.10gb@6"], "overlap"),
    ("H100-80GB", ["3g.40gb@0", "3g.40gb@4", "1g.10gb@6"], "9 memory slices"),
    ("H100-80GB", ["4g.40gb@0", "4g.40gb@0"], "more than the 1"),
    ("A30-24GB", ["1g.6gb+me@0", "2g.12gb+me@2"], "JPEG"),
    ("RTXPRO6000-96GB", ["1g.24gb@1"], "only at 0, 3, 6, 9"),
    ("RTXPRO5000-48GB", ["1g.24gb@0"], "not known"),
]


@pytest.mark.parametrize(("product", "counts"), ILLEGAL)
def test_counts_that_no_gpu_can_hold_are_refused(product: str, counts: dict[str, int]) -> None:
    assert not fits(geometries()[product], counts)
    assert arrange(geometries()[product], counts) is None


@pytest.mark.parametrize(("product", "texts", "why"), MISPLACED)
def test_a_layout_that_does_not_exist_is_refused_with_its_reason(product: str, texts: list[str], why: str) -> None:
    found = legal(geometries()[product], [parse_instance(text) for text in texts])
    assert found is not None
    assert why in found


def test_the_same_name_takes_other_slices_on_another_product() -> None:
    assert geometries()["A100-40GB"].by_name["1g.10gb"].size == 2
    assert geometries()["A100-80GB"].by_name["1g.10gb"].size == 1
    assert fits(geometries()["A100-80GB"], {"1g.10gb": 7})
    assert fits(geometries()["RTXPRO6000-96GB"], {"1g.24gb": 4})


def test_nvidias_creation_order_matters_and_pinned_starts_show_it() -> None:
    """The guide's known issue: 1g, 1g, 2g, 3g in this order does not fit, 3g first does."""
    geometry = geometries()["A100-40GB"]
    wanted = {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}
    assert fits(geometry, wanted)
    assert arrange(geometry, {"2g.10gb": 1, "3g.20gb": 1}, [Instance("1g.5gb", 0), Instance("1g.5gb", 4)]) is None


def test_pinned_instances_that_are_illegal_leave_no_arrangement() -> None:
    assert arrange(geometries()["H100-80GB"], {}, [Instance("3g.40gb", 1)]) is None
    assert arrange(geometries()["H100-80GB"], {}, [Instance("3g.40gb", 4)]) == ()


def test_new_instances_leave_the_low_slices_free() -> None:
    geometry = geometries()["H100-80GB"]
    assert arrange(geometry, {"1g.10gb": 2}) == (Instance("1g.10gb", 5), Instance("1g.10gb", 6))
    assert arrange(geometry, {"3g.40gb": 1}) == (Instance("3g.40gb", 4),)


@pytest.mark.parametrize("text", ["3g.40gb", "3g.40gb@", "g.40gb@0", "3g.40gb@-1", "3g.40gb@04", "", "3g.40gb@0 "])
def test_text_that_is_no_instance_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no MIG instance"):
        parse_instance(text)


@pytest.mark.parametrize("text", ["3g.40gb@4", "1g.24gb+me.all@0", "2g.48gb-me@6", "1g.24gb+gfx@9"])
def test_an_instance_reads_and_writes_alike(text: str) -> None:
    assert str(parse_instance(text)) == text


def test_a_geometry_is_a_value() -> None:
    geometry = geometries()["H100-80GB"]
    twin = pickle.loads(pickle.dumps(geometry))
    assert twin == geometry
    assert hash(twin) == hash(geometry)
    assert twin.by_name == geometry.by_name
