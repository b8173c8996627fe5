#!/usr/bin/env bash
# What has to hold before a commit: style, formatting, the direction of imports, and types.
set -euo pipefail
cd "$(dirname "$0")/.."
ruff check .
ruff format --check .
python ci/imports.py
basedpyright --level error  # of the whole package
