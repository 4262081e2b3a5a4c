"""Neither the order of documents nor the files they stand in change what they mean."""

from __future__ import annotations

import random

import pytest
from tests.build.test_exact import TEXT
from tests.build.text import AS_OF, document, documents

from dovetail.build import assemble
from dovetail.faults import Refused

TEXTS = [f"{part.strip()}\n" for part in TEXT.split("---\n")]
BAD = [
    *TEXTS[:-1],
    document(
        "Policy", "bad", "match: {workloads: {names: [search/sevre]}}\nrule: {admission: {}}\nenforcement: hard"
    ),
    document("Accelerator", "yours", "memory: 40Gi\naliases: [MINE-40]"),
]


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_documents_means_nothing(seed: int) -> None:
    shuffled = random.Random(seed).sample(TEXTS, len(TEXTS))
    found = assemble(documents(*shuffled, files=1 + seed % 3), as_of=AS_OF)
    wanted = assemble(documents(*TEXTS), as_of=AS_OF)
    assert found.spec == wanted.spec
    assert [repr(each) for each in found.spec.workloads] == [repr(each) for each in wanted.spec.workloads]


@pytest.mark.parametrize("seed", range(4))
def test_the_same_faults_are_told_in_any_order(seed: int) -> None:
    shuffled = random.Random(seed).sample(BAD, len(BAD))
    with pytest.raises(Refused) as refused:
        assemble(documents(*shuffled), as_of=AS_OF)
    assert sorted(fault.code for fault in refused.value.faults) == ["DT1305", "DT1312"]
