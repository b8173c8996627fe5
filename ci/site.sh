#!/usr/bin/env bash
# Builds the site and fails on every warning: dead links and anchors, pages outside the navigation, docstrings.
#
#   ci/site.sh [FOLDER]    # default: site/
set -euo pipefail
cd "$(dirname "$0")/.."
python -m mkdocs build --strict --site-dir "${1:-site}"
