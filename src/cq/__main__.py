"""`python -m cq` is `cq`."""

from cq.surfaces.client import main

if __name__ == "__main__":
    raise SystemExit(main())
