"""Plans every case of a file of gang-placement cases and compares with what is proved of it.

    python -m benchmarks.gang_cases FILE [-o json] [--page docs]

prints a table, or with `-o json` `{id: {fits, domains, status, placement, moved, evicted, admitted}}`. `moved` lists
one move per pod, `evicted` names of running pods, `admitted` those of jobs; each where a case has such. A gang that
is told in its job, by a name that others have as well, is placed as `job/gang`. With jobs the placement is of those
admitted as things are; moves and evictions are what would admit all of them. Every answer is checked against its case
by arithmetic of its own (`faults`); `agrees` says, aspect by aspect, whether it is what is proved of the case. With
`--page` the section of the page of measurements is written anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
for _source in (ROOT, ROOT / "solver"):
    if __name__ == "__main__" and str(_source) not in sys.path:  # run as a file
        sys.path.insert(0, str(_source))

from benchmarks import page  # noqa: E402
from benchmarks.gang import check  # noqa: E402
from benchmarks.gang.agree import ASPECTS, agreement  # noqa: E402
from benchmarks.gang.answer import Answer, answer  # noqa: E402
from benchmarks.gang.case import Case  # noqa: E402
from benchmarks.gang.read import Unreadable, read_case, strange_fields  # noqa: E402
from benchmarks.measure import taken  # noqa: E402

SECONDS = 60.0


def plan_case(raw: Mapping[str, Any], seconds: float = SECONDS) -> dict[str, Any]:
    """Return the answer to one case with its check; a case that cannot be planned says why."""
    began = time.monotonic()
    try:
        case = read_case(raw)
        found = answer(case, seconds)
    except Unreadable as error:
        case, found = Case(str(raw.get("id")), (), (), (), raw=raw), Answer(False, "invalid", reason=str(error))
    except Exception as error:  # one case must not cost the others
        case, found = Case(str(raw.get("id")), (), (), (), raw=raw), Answer(None, "error", reason=repr(error))
    faults = check.faults(case, found)
    if faults and found.fits:  # what kept pods break already is excused in a plan (S4.5), and not in a case
        found = replace(found, fits=False, moved=None, evicted=None)
    agrees = dict(agreement(case, found))
    told = found.told(case) | {"agrees": agrees, "seconds": round(time.monotonic() - began, 2)}
    return told | ({"faults": faults} if faults else {})


def plan_file(file: Path, seconds: float = SECONDS, only: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Return the answers to all cases of a file, by id."""
    told = ((str(each.get("id")), each) for each in cases_of(file))
    return {name: plan_case(each, seconds) for name, each in told if not only or name in only}


def cases_of(file: Path) -> list[Mapping[str, Any]]:
    """Return the cases of a file, a list or under `cases`; what is no mapping is a case without sense, by number."""
    raw = json.loads(file.read_text(encoding="utf-8"))
    cases = raw.get("cases", [raw]) if isinstance(raw, Mapping) else raw
    return [each if isinstance(each, Mapping) else {"id": f"#{index}"} for index, each in enumerate(cases or [])]


def warnings(file: Path) -> list[str]:
    """Return a line per case of a file with fields that the form does not have."""
    strange = ((each.get("id"), strange_fields(each)) for each in cases_of(file))
    return [f"{name}: not of the form, and not heeded: {', '.join(fields)}" for name, fields in strange if fields]


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a line per case and a summary."""
    lines = [f"{'case':10} {'fits':6} {'status':11} {'seconds':>7}  agreement"]
    for name, told in found.items():
        words = [f"{aspect} {'yes' if same else 'NO'}" for aspect, same in told["agrees"].items()]
        words += [f"FAULT {fault}" for fault in told.get("faults", ())]
        words += [told["reason"][:80]] if told.get("reason") and told["status"] != "infeasible" else []
        lines.append(f"{name:10} {told['fits']!s:6} {told['status']:11} {told['seconds']:7.2f}  {', '.join(words)}")
    lines.append("")
    for aspect in ASPECTS:
        verdicts = [told["agrees"][aspect] for told in found.values() if aspect in told["agrees"]]
        if verdicts:
            lines.append(f"{aspect:15} {sum(verdicts)} of {len(verdicts)} agree")
    whole = sum(map(_agrees, found.values()))
    lines.append(f"{'in all':15} {whole} of {len(found)} cases agree in everything and pass the check")
    return "\n".join(lines)


def _agrees(told: Mapping[str, Any]) -> bool:
    return all(told["agrees"].values()) and not told.get("faults")


def summary(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of the page: per aspect how many cases agree and how many tell of it."""
    by_aspect = {aspect: [t["agrees"][aspect] for t in found.values() if aspect in t["agrees"]] for aspect in ASPECTS}
    seconds = [told["seconds"] for told in found.values()]
    return {
        "aspects": {aspect: (sum(verdicts), len(verdicts)) for aspect, verdicts in by_aspect.items() if verdicts},
        "cases": len(found),
        "whole": sum(map(_agrees, found.values())),
        "seconds": sum(seconds),
        "longest": max(seconds, default=0.0),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan a file of cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gang_cases", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument("--time-limit", type=float, default=SECONDS, help="seconds per plan")
    parser.add_argument("--only", nargs="*", default=(), help="ids of cases")
    parser.add_argument("--page", type=Path, help="directory of the page of measurements")
    given = parser.parse_args(arguments)
    for line in warnings(given.file):
        print(line, file=sys.stderr)
    load = taken() if given.page else 0.0
    found = plan_file(given.file, given.time_limit, given.only)
    if given.page:
        page.store(page.CASES_RAW, {"load": load, **summary(found)})
        page.write_page(given.page, page.CASES_RAW)
    print(json.dumps(found, indent=1) if given.output == "json" else table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
