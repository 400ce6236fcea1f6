#!/usr/bin/env bash
# Calls `proctor gate` in a pipeline. Writes gate.md and gate.xml. RUN, AGAINST: ids of the runs; also MARGIN, ARGUMENTS,
# GATEWAY, PAGES, and MAY_BE_INCONCLUSIVE=true, which lets code 9 through and no other.
set -uo pipefail
# Options are separated by spaces; a star is none of the files here.
set -f
# Of an earlier gate of the job: this one may end without a decision.
rm -f gate.md gate.xml
[ -z "${GATEWAY:-}" ] || export PROCTOR_GATEWAY=$GATEWAY
# shellcheck disable=SC2086  # several options
proctor gate "$RUN" --against "$AGAINST" --margin "${MARGIN:-1pt}" ${PAGES:+--pages "$PAGES"} ${ARGUMENTS:-} \
  --markdown gate.md --junit gate.xml
code=$?
case $code in
  0) decision=pass ;;
  1) decision=fail ;;
  9) decision=inconclusive ;;
  *) decision=error ;;
esac
[ -z "${GITHUB_OUTPUT:-}" ] || echo "decision=$decision" >> "$GITHUB_OUTPUT"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -e gate.md ]; then cat gate.md >> "$GITHUB_STEP_SUMMARY"; fi
if [ "$decision" = inconclusive ] && [ "${MAY_BE_INCONCLUSIVE:-}" = true ]; then exit 0; fi
exit "$code"
