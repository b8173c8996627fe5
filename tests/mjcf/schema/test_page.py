"""The page on MJCF in the documentation is the one that the language table makes."""

from jaxsim.mjcf.schema.element_type import all_types
from jaxsim.mjcf.schema.page import language_page
from tests.paths import DOCS


def test_the_page_in_the_documentation_is_up_to_date():
    page = DOCS / "mjcf.md"
    assert page.read_text() == language_page(), "run: python -m jaxsim.mjcf.schema.page > docs/mjcf.md"


def test_the_page_names_every_attribute():
    page = language_page()
    assert all(f"`{name}`" in page for kind in all_types() for name in kind.attributes)
