"""The map in docs/house.md names what there is."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pursuit"
TEXT = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
MODULES = [p.name + "/" if p.is_dir() else p.stem for p in PACKAGE.iterdir() if p.is_dir() or p.suffix == ".py"]
SOURCES = [p.name for p in (PACKAGE / "native").iterdir() if p.suffix in (".h", ".cpp")]


@pytest.mark.parametrize("name", sorted({*MODULES, *SOURCES} - {"__init__", "__main__", "__pycache__/"}))
def test_the_map_names_every_module_and_every_source_of_the_kernels(name):
    assert f"`{name}`" in TEXT
