"""The formats of annotations; `FORMATS` is the one place that lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from dovetail_cli.render import github, gitlab, sarif
from dovetail_cli.render.annotation import Annotation

FORMATS: Final[Mapping[str, Callable[[Iterable[Annotation]], str]]] = MappingProxyType(
    {"github": github.rendered, "gitlab": gitlab.rendered, "sarif": sarif.rendered}
)


def rendered(annotations: Iterable[Annotation], name: str) -> str:
    """Return annotations in a format."""
    return FORMATS[name](annotations)
