"""`python -m jaxsim`: the command line."""

import sys

from jaxsim.cli import main

sys.exit(main())
