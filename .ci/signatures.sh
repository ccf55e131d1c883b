#!/usr/bin/env bash
# Checks that the installed packages are the ones that their publishers signed. If the registry gives no signatures, or if
# their keys cannot be fetched, it says so and does not fail.
set -uo pipefail

if output="$(npm audit signatures --fetch-retries=0 --loglevel=error 2>&1)"; then
  echo "$output"
elif grep -qE '(invalid|missing).*(signature|attestation)' <<< "$output"; then
  echo "$output"
  exit 1
else
  echo "signatures: not checked, the registry or its keys did not answer ($(head -n 1 <<< "$output"))"
fi
