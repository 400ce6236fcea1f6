#!/bin/bash
cd letters
for file in *.txt; do echo "$file,$(wc -w < "$file")"; done > ../counts.csv
echo "total,$(cat ./*.txt | wc -w)" >> ../counts.csv
