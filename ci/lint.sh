#!/usr/bin/env bash
# What has to hold before a commit: style, formatting, and the direction of imports.
set -euo pipefail
cd "$(dirname "$0")/.."
ruff check .
ruff format --check .
python ci/imports.py
