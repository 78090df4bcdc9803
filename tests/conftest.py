"""Settings for every test: hypothesis tries the same examples on every run, no clock decides a result,
and no daemon of the user's answers for us."""

from __future__ import annotations

import os
import tempfile

from hypothesis import HealthCheck, settings

settings.register_profile(
    "cq", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("cq")
os.environ["XDG_RUNTIME_DIR"] = os.environ["XDG_CONFIG_HOME"] = tempfile.gettempdir() + "/cq-tests-use-no-daemon"
