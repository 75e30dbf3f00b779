# Tunings ended at random moments, by signals that can be caught and by others, lose no trial, leave nothing, and hand over
# what they found. `test/kills 1000` does the same at length.
. test/cli/common
passes "tunings are ended" "$PYTHON" test/kills 5
sed 's/^/    /' "$tmp/stdout"
finish
