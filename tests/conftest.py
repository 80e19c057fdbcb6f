"""What every test shares: hypothesis without deadlines, and fuzzing counted among the slow."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "raspire", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("raspire")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`pytest -m "not slow"` is the quick part, so fuzzing must not slip into it."""
    for item in items:
        if item.get_closest_marker("fuzz"):
            item.add_marker(pytest.mark.slow)
