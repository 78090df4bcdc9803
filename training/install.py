"""Takes weights that train.py wrote into the package, and writes their manifest."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

FILES = (
    "vocabulary.txt", "static_rows.npy", "static_scales.npy", "reranker_rows.npy", "reranker.npz",
)  # fmt: skip
LATE = ("late_rows.npy", "late.npz", "verbs.txt")  # no vector that is kept depends on these


def main(trained: Path, package: Path) -> None:
    facts, late, blend = (json.loads((trained / f"{name}.json").read_text()) for name in ("trained", "late", "blend"))
    digests = {}
    for name in (*FILES, *LATE):
        shutil.copyfile(trained / name, package / name)
        digests[name] = hashlib.sha256((package / name).read_bytes()).hexdigest()
    named = {name: digests[name] for name in FILES}
    identity = hashlib.sha256(json.dumps([named, facts["fields"]]).encode()).hexdigest()[:12]
    on = ("seed", "passages", "pairs_sha256")
    tables = {"trained": {k: facts[k] for k in on}, "trained.questions": facts["questions"],
              "late_trained": {k: late[k] for k in (*on, "steps")}, "late_trained.questions": late["questions"],
              "fields": facts["fields"], **blend, "files": digests}  # fmt: skip
    lines = [
        "# Written by training/install.py; what each number means stands in __init__.py.",
        f'identity = "{identity}"',
    ]
    for title, table in tables.items():
        lines += ["", f"[{title}]", *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items())]
    (package / "manifest.toml").write_text("\n".join(lines) + "\n")
    print(identity)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).parents[1] / "src" / "cq" / "embed" / "weights")
