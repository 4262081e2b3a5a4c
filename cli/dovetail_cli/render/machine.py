"""Documents as JSON and YAML, for programs."""

from __future__ import annotations

import json
from typing import Any


def rendered(document: dict[str, Any], name: str) -> str:
    """Return plain data as `json` or `yaml`; ASCII only, so that no text can steer a terminal."""
    if name == "json":
        return json.dumps(document, indent=2) + "\n"
    import yaml

    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=False, width=1_000, default_flow_style=False))
