#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# top.sh [OPTIONS]: installs what the build needs, builds, starts the live top.
set -eu
cd "$(dirname "$0")/.."
scripts/deps.sh build
make -s -j"$(nproc)"
exec build/sfbpf-top "$@"
