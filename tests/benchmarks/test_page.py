"""The page of measurements is written section by section: what was not measured anew stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import page

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
    written.write_text("# Benchmarks\n\nBy hand.\n\n## Fleets\n\nOld.\n", encoding="utf-8")
    page.store(page.LINGJUN_RAW, LINGJUN)
    page.write_page(tmp_path)
    once = written.read_text(encoding="utf-8")
    assert once.startswith("# Benchmarks\n\nBy hand.\n\n## Fleets\n\nOld.\n\n## Ten gangs")
    assert "| 847 | dovetail | 10 | 10 | 10 | 60 | optimal | 4.0 s |" in once
    assert "| 847 | greedy | 9 | 10 | 10 | 68 |  |  |" in once
    page.write_page(tmp_path)
    assert written.read_text(encoding="utf-8") == once
