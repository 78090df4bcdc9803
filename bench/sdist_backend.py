"""A build backend that builds nothing. pip asks an sdist's backend for metadata before it hands over the archive;
in the place of the real backends this one copies the PKG-INFO that lies in the sdist, so no package code runs."""

from __future__ import annotations

import shutil
from email.parser import HeaderParser
from pathlib import Path

BACKENDS = (
    "flit_core.buildapi",
    "hatchling.build",
    "maturin",
    "pdm.backend",
    "poetry.core.masonry.api",
    "setuptools.build_meta",
)


def prepare_metadata_for_build_wheel(directory: str, config_settings: object = None) -> str:
    info = HeaderParser().parsestr(Path("PKG-INFO").read_text(encoding="utf-8"))
    folder = Path(directory, f"{info['Name'].replace('-', '_')}-{info['Version']}.dist-info")
    folder.mkdir()
    shutil.copy("PKG-INFO", folder / "METADATA")
    return folder.name


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    return []


def write_shims(folder: Path) -> None:
    """Makes `folder`, put first on the path, answer to the name of every backend."""
    shutil.copy(__file__, folder / "sdist_backend.py")
    for name in BACKENDS:
        *packages, module = name.split(".")
        place = folder
        for package in packages:
            place /= package
            place.mkdir(exist_ok=True)
            (place / "__init__.py").touch()
        (place / f"{module}.py").write_text("from sdist_backend import *\n")
