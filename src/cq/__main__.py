"""`python -m cq` is `cq`."""

from cq.surfaces.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
