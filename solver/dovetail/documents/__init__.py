"""Documents: YAML and JSON read with places, checked against the schemas, gathered into projects."""

from dovetail.documents.document import Document
from dovetail.documents.format import format_text
from dovetail.documents.json_values import as_json
from dovetail.documents.kinds import ALL_KINDS, API_VERSION, READ_KINDS, WRITTEN_KINDS
from dovetail.documents.project import PROJECT_FILE, DocumentSet, load_project
from dovetail.documents.reading import load_file, load_text
from dovetail.documents.unsupported import leaves, unsupported_leaves

__all__ = [
    "ALL_KINDS",
    "API_VERSION",
    "PROJECT_FILE",
    "READ_KINDS",
    "WRITTEN_KINDS",
    "Document",
    "DocumentSet",
    "as_json",
    "format_text",
    "leaves",
    "load_file",
    "load_project",
    "load_text",
    "unsupported_leaves",
]
