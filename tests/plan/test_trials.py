"""What running accounts say of a trial placement is what the whole checks say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.support.plans import greedy, plan_for
from tests.support.tiny_specs import tiny

from dovetail.plan.forbidden import Trials
from dovetail.spec import Enforcement


def test_reasons_are_those_of_whole_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [tiny(seed) for seed in range(240)]
    specs = [
        replace(s, policies=tuple(replace(p, enforcement=Enforcement("hard")) for p in s.policies)) for s in specs
    ]
    placed = [(spec, greedy(spec)) for spec in specs]
    quick = [plan_for(spec, places, "feasible").admitted for spec, places in placed]
    with monkeypatch.context() as patch:
        patch.setattr(Trials, "_rises", lambda *_: True)
        patch.setattr(Trials, "_certain", lambda *_: False)
        whole = [plan_for(spec, places, "feasible").admitted for spec, places in placed]
    assert quick == whole
    told = Counter(code for plan in quick for result in plan.values() for code in result.reasons)
    assert told["DT4106"] > 20  # hard policies forbid
