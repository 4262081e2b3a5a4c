"""Links between the GPUs of a gang: the level at which any two meet, and how wide it is there (S1.2)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.specs import make_spec, node, place

from dovetail.placement import Place
from dovetail.placement.links import Link, links, narrowest
from dovetail.spec import Accelerator, Spec
from dovetail.spec.inside import Parts

HALVES: Parts = ((0, 1, 2, 3), (4, 5, 6, 7))
PAIRS: Parts = ((0, 1), (2, 3), (4, 5), (6, 7))
CARD = Accelerator("H100-80GB", 81_559, nvlink=900_000)
BANDWIDTH = {"rack": 50_000, "node": 32_000, "socket": 64_000}


def spec_of(
    islands: Parts = (), sockets: Parts = (), *, nvlink: bool = True, told: dict[str, int] | None = None
) -> Spec:
    """Return two racks of two nodes with eight GPUs each."""
    nodes = [
        node(f"n{i}", accelerator="H100-80GB", domains={"rack": f"r{i // 2}"}, islands=islands, sockets=sockets)
        for i in range(4)
    ]
    spec = make_spec(nodes, [], levels=("rack", "node"))
    cards = {"H100-80GB": CARD if nvlink else replace(CARD, nvlink=0)}
    cluster = replace(spec.cluster, bandwidth=BANDWIDTH if told is None else told)
    return replace(spec, cluster=cluster, accelerators=cards)


ISLAND, SOCKET, NODE, RACK = (
    Link("island", 900_000),
    Link("socket", 64_000),
    Link("node", 32_000),
    Link("rack", 50_000),
)


@pytest.mark.parametrize(
    ("spec", "gpus", "expected"),
    [
        (spec_of(), (0,), ()),
        (spec_of(), (0, 7), (ISLAND,)),
        (spec_of(sockets=HALVES), (0, 7), (ISLAND,)),  # an island over both sockets
        (spec_of(PAIRS, HALVES), (0, 1), (ISLAND,)),
        (spec_of(PAIRS, HALVES), (0, 2), (SOCKET,)),
        (spec_of(PAIRS, HALVES), (0, 4), (NODE,)),
        (spec_of(PAIRS, HALVES), (0, 1, 2, 4), (NODE, SOCKET, ISLAND)),
        (spec_of(PAIRS), (0, 2), (NODE,)),
        (spec_of(sockets=HALVES, nvlink=False), (0, 1), (SOCKET,)),
        (spec_of(sockets=HALVES, nvlink=False), (0, 4), (NODE,)),
        (spec_of(nvlink=False), (0, 4), (NODE,)),
        (spec_of(PAIRS, nvlink=False), (0, 1), (Link("island", 32_000),)),
        (spec_of(PAIRS, HALVES, told={"node": 32_000}), (0, 2), (Link("socket", 32_000),)),
        (spec_of(nvlink=False, told={"island": 200_000}), (0, 7), (Link("island", 200_000),)),
        (spec_of(told={"island": 200_000}), (0, 7), (Link("island", 200_000),)),
    ],
)  # fmt: skip
def test_gpus_of_a_node_meet_at_the_nearest_level(
    spec: Spec, gpus: tuple[int, ...], expected: tuple[Link, ...]
) -> None:
    assert links(spec, [Place("n0", gpus)]) == expected


def test_nodes_meet_in_their_rack_and_racks_nowhere() -> None:
    spec = spec_of(PAIRS, HALVES)
    assert links(spec, [place("n0", 0), place("n1", 0)]) == (RACK,)
    assert links(spec, [place("n0", 0, 1), place("n1", 0)]) == (RACK, ISLAND)
    assert links(spec, [place("n0", 0), place("n2", 0)]) == (Link("", None),)


def test_clients_of_one_gpu_have_no_link() -> None:
    assert links(spec_of(), [place("n0", 0), place("n0", 0)]) == ()


def test_the_narrowest_is_known_where_all_are() -> None:
    assert narrowest(spec_of(PAIRS, HALVES), [place("n0", 0, 1, 2, 4)]) == NODE
    assert narrowest(spec_of(PAIRS, HALVES, told={"socket": 64_000}), [place("n0", 0, 1, 2, 4)]) is None
    assert narrowest(spec_of(), [place("n0", 0)]) is None
