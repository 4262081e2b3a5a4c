"""Files that belong together take their places together."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dovetail.replacing import replace_all


def written(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.is_file()}


def test_files_take_their_places_and_no_second_name_stays(tmp_path: Path) -> None:
    new, out = written(tmp_path / "new", a="1", b="2"), written(tmp_path / "out", a="old", c="mine")
    replace_all([(new / name, out / name) for name in "ab"])
    assert texts(out) == {"a": "1", "b": "2", "c": "mine"}
    assert texts(new) == {}


def test_where_one_cannot_be_moved_what_was_there_before_is_there_again(tmp_path: Path) -> None:
    new, out = written(tmp_path / "new", a="1", b="2", c="3"), written(tmp_path / "out", a="old", gone="old")
    (out / "c").mkdir()
    moves = [(new / "a", out / "a"), (new / "b", out / "b"), (out / "gone", new / "gone"), (new / "c", out / "c")]
    with pytest.raises(OSError, match="c") as caught:
        replace_all(moves)
    assert caught.value.filename2 == str(out / "c")
    assert texts(out) == {"a": "old", "gone": "old"}
    assert texts(new) == {"b": "2", "c": "3"}


def test_without_second_names_files_are_replaced_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", unable)
    new, out = written(tmp_path / "new", a="1", b="2"), written(tmp_path / "out", a="old")
    replace_all([(new / name, out / name) for name in "ab"])
    assert texts(out) == {"a": "1", "b": "2"}
