"""`python -m jaxsim`: the command line."""

import sys

from jaxsim.tools.cli import main

sys.exit(main())
