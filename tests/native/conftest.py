"""Native programs are compiled here as users compile them, elsewhere without optimisation."""

import pytest


@pytest.fixture(autouse=True)
def optimised(monkeypatch):
    monkeypatch.delenv("JAXSIM_CFLAGS", raising=False)
