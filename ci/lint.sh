#!/usr/bin/env bash
# What has to hold before a commit: style, formatting, the direction of imports, words, and types.
set -euo pipefail
cd "$(dirname "$0")/.."
ruff check .
ruff format --check .
python ci/imports.py
python ci/words.py
basedpyright --level error  # of the whole package
