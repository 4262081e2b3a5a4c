"""What a fleet loses at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import yaml

_FAILED = re.compile(r"^    (?P<node>[\w-]+): \{failed(Gpus)?: .*\}\n", re.MULTILINE)


def without_zone(texts: Mapping[str, str], zone: str) -> Mapping[str, str]:
    """Return the files of a fleet with all nodes of a zone failed."""
    cluster = texts["cluster.yaml"]
    gone = set(_nodes(cluster, zone))
    kept = _FAILED.sub(lambda found: "" if found["node"] in gone else found[0], cluster)
    kept += "" if "\n  nodes:\n" in kept else "  nodes:\n"
    return {**texts, "cluster.yaml": kept + "".join(f"    {node}: {{failed: true}}\n" for node in sorted(gone))}


def _nodes(cluster: str, zone: str) -> Iterator[str]:
    """Yield the names of a zone's nodes."""
    for group in yaml.safe_load(cluster)["spec"]["nodeGroups"]:
        if group["domains"]["zone"] == {"name": zone}:
            yield from (f"{group['name']}-{number:03d}" for number in range(group["count"]))
