"""What both the tests and the scripts of `ci/` need to compare jaxsim with MuJoCo and with differences of itself.

Not part of the wheel. An editable install puts the repository on the path, so that both import it plainly. It imports
neither `tests` nor `ci`.
"""
