"""The page of measurements is written section by section: what was not measured anew stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import fleets, fleets_page, page, replan_page
from benchmarks.measure import busy_ticks

LINGJUN = {
    "load": 0.0,
    "runs": [
        {
            "free": 847,
            "rows": [
                {"who": "greedy", "admitted": 9, "domains": {"dsw": 10, "psw": 10, "asw": 68}},
                {
                    "who": "dovetail",
                    "admitted": 10,
                    "domains": {"dsw": 10, "psw": 10, "asw": 60},
                    "seconds": 4.04,
                    "proof": "optimal",
                },
            ],
        }
    ],
}


def test_a_section_is_written_anew_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "SCRATCH", tmp_path / "raw")
    written = tmp_path / page.PAGE
    written.write_text("# Old\n\nOld.\n\nMachine: by hand.\n\n## Fleets\n\nOld.\n", encoding="utf-8")
    page.store(page.LINGJUN_RAW, LINGJUN)
    page.write_page(tmp_path, page.LINGJUN_RAW)
    once = written.read_text(encoding="utf-8")
    assert once.startswith(f"{page.INTRODUCTION}\nMachine: by hand.\n\n## Fleets\n\nOld.\n\n## Ten gangs")
    assert "| 847 | dovetail | 10 | 10 | 10 | 60 | optimal | 4.0 s |" in once
    assert "| 847 | greedy | 9 | 10 | 10 | 68 |  |  |" in once
    page.write_page(tmp_path, page.LINGJUN_RAW)
    assert written.read_text(encoding="utf-8") == once


def test_raw_figures_of_what_was_not_measured_now_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "SCRATCH", tmp_path / "raw")
    page.store(page.LINGJUN_RAW, LINGJUN)
    page.write_page(tmp_path, page.LINGJUN_RAW)
    page.store(page.LINGJUN_RAW, LINGJUN | {"load": 9.0, "runs": []})
    page.store(page.TRACE_RAW, {"load": 9.0, "lists": []})
    page.store(page.INSTANCES_RAW, {"load": 0.0, "fleets": []})
    before = (tmp_path / page.PAGE).read_text(encoding="utf-8")
    page.write_page(tmp_path, page.INSTANCES_RAW)
    after = (tmp_path / page.PAGE).read_text(encoding="utf-8")
    assert after.startswith(before)
    assert after.removeprefix(before).strip().startswith("## Fleets of instances")


def test_the_machine_at_the_top_is_that_of_the_first_sections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "SCRATCH", tmp_path / "raw")
    (tmp_path / page.PAGE).write_text("# Old\n\nMachine: by hand.\n", encoding="utf-8")
    page.store(page.FLEETS_RAW, {"load": 1.5, "fleets": []})
    page.write_page(tmp_path, page.FLEETS_RAW)
    top, _, rest = (tmp_path / page.PAGE).read_text(encoding="utf-8").partition("## Synthetic fleets")
    assert top.count(page.MACHINE) == 1
    assert "by hand" not in top
    assert "**Others had 1.5 processors" in top
    assert page.MACHINE not in rest


def test_raw_figures_of_fleets_are_kept_one_by_one_and_a_fleet_replaces_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[tuple[int, float]] = []

    def measure(gpus: int, load: float, given: object) -> fleets.Fleet:
        if load == 1.15:
            raise KeyboardInterrupt
        measured.append((gpus, load))
        return fleets.Fleet(gpus, load, 1, float(len(measured)), ())

    monkeypatch.setattr(page, "SCRATCH", tmp_path / "raw")
    monkeypatch.setattr(fleets, "measure", measure)
    monkeypatch.setattr(fleets, "taken", lambda: 0.0)
    with pytest.raises(KeyboardInterrupt):
        fleets.main(["--gpus", "10000", "1000", "--loads", "1.0", "1.15"])
    with pytest.raises(KeyboardInterrupt):
        fleets.main(["--gpus", "1000", "--loads", "1.0", "1.15"])
    with pytest.raises(KeyboardInterrupt):
        fleets.main(["--gpus", "10000", "--loads", "1.0", "1.15"])
    kept = [(each["gpus"], each["load"], each["validate"]) for each in page.raw(page.FLEETS_RAW)["fleets"]]
    assert kept == [(1000, 1.0, 2.0), (10000, 1.0, 3.0)]


def test_a_section_says_what_others_had_of_the_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = "cpu  300 10 200 9000 400 5 15 70 250 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
    # Neither idle, nor waiting, nor guests, which count as others' already.
    assert busy_ticks(stat) == 300 + 10 + 200 + 5 + 15 + 70
    monkeypatch.setattr(page, "SCRATCH", tmp_path / "raw")
    for load, told in ((0.1, False), (1.5, True)):
        page.store(page.LINGJUN_RAW, LINGJUN | {"load": load})
        page.write_page(tmp_path, page.LINGJUN_RAW)
        text = (tmp_path / page.PAGE).read_text(encoding="utf-8")
        remark = "**Others had 1.5 processors at the start: times and what they allow are not typical.**"
        assert (remark in text) == told


def tier(name: str, value: int, bound: int | None) -> dict[str, object]:
    gap = None if not bound else (bound - value) / bound
    return {"name": name, "value": value, "bound": bound, "gap": gap, "proof": "certificate", "relaxed": []}


def row_of(*tiers: dict[str, object]) -> str:
    """Return the row of a plan with some tiers in the table of gaps."""
    plan = {"seconds": 60, "fast": False, "took": 61.0, "peak": 2**20, "failed": "", "stopped_by": "time"}
    known = {"first": 0.2, "verified": True, "gangs": 0, "tiers": tiers}
    fleet = {"gpus": 1000, "load": 1.0, "also": ["slices"], "gangs": 0, "plans": [plan | known], "rivals": []}
    (row,) = (line for text in fleets_page.joint([fleet]) for line in text.split("\n") if line.startswith("| 1,000"))
    return row


def test_bands_of_gpu_work_are_added_up_with_their_bounds() -> None:
    row = row_of(tier("admitted[900]", 90, 100), tier("admitted-cpu[900]", 0, 1000), tier("admitted[100]", 30, 50))
    assert "| admitted[900] 10.00 %, admitted-cpu[900] 100.00 %, admitted[100] 40.00 % | 20.00 % |" in row


def test_a_band_without_a_bound_leaves_all_without() -> None:
    assert "| no bound | no bound |" in row_of(tier("admitted[900]", 90, 100), tier("admitted[100]", 30, None))


@pytest.mark.parametrize(
    ("mended", "shown"), [((), "0"), ((tier("mend", 0, 0),), "0"), ((tier("mend", 1, 0),), "1 (bound 0)")]
)
def test_a_plan_anew_tells_what_it_leaves_to_mend(mended: tuple[dict[str, object], ...], shown: str) -> None:
    told = [*mended, *(tier(f"disruption.{name}", 0, 0) for name in ("evicted", "gpuTimeLost", "moves"))]
    told += [tier("admitted[900]", 9, 9), tier("cost", 5, 5)]
    plan = {"seconds": 60, "fast": False, "took": 61.0, "peak": 2**20, "failed": "", "stopped_by": "time"}
    known = {"first": 0.2, "verified": True, "phases": {"improve": 50.0}, "tiers": told}
    fleet = {"gpus": 1000, "summary": {"restarts": 2}, "plan": plan | known, "rivals": []}
    text = "\n".join(replan_page.section([fleet]))
    assert f"| 1,000 | 60 s | {shown} | 0.00 % |" in text


def test_a_new_policy_tells_what_is_left_and_how_many_must_move() -> None:
    moves = tier("disruption.moves", 25, 24) | {"proof": "trivial"}
    told = [tier("mend", 1, 0), tier("admitted[900]", 9, 9), tier("disruption.evicted", 0, 0), moves]
    plan = {"seconds": 60, "fast": True, "took": 61.0, "peak": 2**20, "failed": "", "stopped_by": "time"}
    rival = {"rival": "first fit, nothing moved", "values": {"mend": 40}, "failed": ""}
    fleet = {"gpus": 1000, "policy": "few", "plan": plan | {"verified": True, "tiers": told}, "rivals": [rival]}
    text = "\n".join(replan_page.policies([fleet]))
    assert "| 1,000 | few | 60 s, fast | 1 (bound 0) | 40 | 25 | 24 (trivial) | 0.00 % | 0 |" in text


def test_a_lost_zone_tells_the_gap_of_every_band_and_that_of_first_fit() -> None:
    told = [tier("admitted[900]", 999, 1000), tier("admitted[100]", 50, 50), tier("disruption.evicted", 3, 3)]
    told += [tier("disruption.moves", 25, 0)]
    plan = {"seconds": 60, "fast": True, "took": 61.0, "peak": 2**20, "failed": "", "stopped_by": "time"}
    rival = {"rival": "first fit, nothing moved", "values": {"admitted[900]": 950}, "failed": ""}
    fleet = {"gpus": 1000, "zone": "zd", "plan": plan | {"verified": True, "tiers": told}, "rivals": [rival]}
    text = "\n".join(replan_page.zones([fleet | {"summary": {"restarts": 7}}]))
    assert "| 1,000 | zd | 60 s, fast | 0.10, 0.00 % | 5.00 % | 0 | 3 | 25 | 7 |" in text
