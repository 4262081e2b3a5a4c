"""Codes of scenarios and tests: patches that do not fit the project, expectations that say nothing (DT18xx)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dovetail.faults.info import CodeInfo

SCENARIOS: Final[Mapping[str, CodeInfo]] = {
    "DT1801": CodeInfo("unknown level in a scenario", "The cluster has no topology level of this name."),
    "DT1802": CodeInfo(
        "unknown domain in a scenario",
        "The level has no domain of this path, nor one whose path ends in this name. At level `node`, name a node.",
    ),
    "DT1803": CodeInfo(
        "ambiguous domain in a scenario",
        "Several domains of the level end in this name. Write the whole path, such as `b1/r1`.",
    ),
    "DT1804": CodeInfo("unknown node group in a scenario", "The cluster declares no node group of this name."),
    "DT1805": CodeInfo("too many nodes in a scenario", "A cluster has at most 200,000 nodes, added ones included."),
    "DT1806": CodeInfo(
        "unknown workload in a scenario or test",
        "No document declares the workload, or an earlier patch has dropped it. One in a namespace is named with "
        "it: `namespace/name`.",
    ),
    "DT1807": CodeInfo(
        "role of a scenario does not fit",
        "A workload with roles is scaled one role at a time; one without roles as a whole.",
    ),
    "DT1808": CodeInfo(
        "unknown policy in a scenario or test",
        "No pack of the project and no document has the policy, or an earlier patch has dropped it, or the test's "
        "`policies` leave it out.",
    ),
    "DT1809": CodeInfo(
        "set after another change",
        "`set` replaces a whole document, so that an earlier change of it would be lost. Put `set` first.",
    ),
    "DT1810": CodeInfo(
        "expectation says nothing",
        "An expectation names one of `workload`, `summary`, `tier`, `status`, `policy`, and says what is expected: "
        "`admitted`, `replicas` or a bound of a workload, a bound of a figure or tier, `result`, `violation` or "
        "`subjects` of a policy.",
    ),
    "DT1811": CodeInfo(
        "no documents are given",
        "`given` of a PolicyTest names files of the project, by patterns that count from the project's directory.",
    ),
    "DT1812": CodeInfo(
        "no document of a world",
        "The world of a PolicyTest is made of documents of kind Cluster, Accelerator, Workload, Policy, Waiver, "
        "Objective and Placement.",
    ),
    "DT1813": CodeInfo(
        "places that cannot be",
        "The places of a case are judged by policies only where they can be at all: replicas, nodes and GPUs exist, "
        "capacities hold, nodes take the replicas in. What is wrong has the name and code of a check of `verify`.",
    ),
    "DT1814": CodeInfo(
        "status of places that are given",
        "Where `placements` are given, they are judged and nothing is searched for, so that there is no status.",
    ),
    "DT1815": CodeInfo("case named twice", "The cases of a PolicyTest have different names."),
    "DT1816": CodeInfo(
        "size that does not fit",
        "A workload whose replicas form groups, or that is elastic, has whole groups, as many of each role, "
        "and steps at any size.",
    ),
    "DT1817": CodeInfo(
        "nothing to cut anew", "A `repartition` selects nodes by `nodes`; none of those that it selects has a GPU."
    ),
}
