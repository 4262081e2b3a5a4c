"""The same project told differently: documents in another order and in other files."""

from __future__ import annotations

import random
import re
from pathlib import Path


def shuffled(project: Path, out: Path, seed: int) -> Path:
    """Write a project's documents in random order into files of other names; the Project document stays first."""
    (out / "workloads").mkdir(parents=True)
    (out / "dovetail.yaml").write_text((project / "dovetail.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    others = sorted(path for path in project.rglob("*.yaml") if path.name != "dovetail.yaml")
    documents = [
        text for path in others for text in re.split(r"^---\n", path.read_text(encoding="utf-8"), flags=re.M)
    ]
    documents = [text for text in documents if "apiVersion:" in text]
    source = random.Random(seed)
    source.shuffle(documents)
    names = ["a.yaml", "workloads/z.yaml", "workloads/b.yaml"]
    for index, name in enumerate(names):
        (out / name).write_text("---\n".join(documents[index :: len(names)]), encoding="utf-8")
    return out
