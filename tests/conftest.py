"""Settings for every test: hypothesis tries the same examples on every run, and no clock decides a result."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "cq", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("cq")
