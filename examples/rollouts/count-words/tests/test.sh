#!/bin/bash
printf 'empty.txt,0\nfirst.txt,10\nsecond.txt,7\ntotal,17\n' > /tmp/expected
if cmp -s /tmp/expected counts.csv; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
