#!/bin/sh
# Installs the type checkers that codegen's tests use, beside this file and in
# the versions of package-lock.json. Does nothing where they are installed.
set -eu
cd "$(dirname "$0")"
if [ -f node_modules/.installed ] && cmp -s package-lock.json node_modules/.installed; then
    exit 0
fi
npm ci --no-audit --no-fund
cp package-lock.json node_modules/.installed
