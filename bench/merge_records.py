#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Merges cache files of one space, each a pass over the same points in the same order of
chance: the time of a point is the least of its passes, and `passes` keeps them all, so that
`two_stages.py tables` can say how far two passes are apart. Times stamped and spent on building are
those of the first pass; keys that nothing here reads are dropped.

    bench/merge_records.py OUT.json.gz PASS.json.gz PASS.json.gz ...
"""
import gzip
import json
import sys

KEPT = ("time", "times", "compile_time", "groups", "local")


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        return json.load(file)


def without_misread(entry):
    """A least run that no other is within twice of was misread (src/measure/sample.c, which once let it count);
    those below 0.2 ms are taken as they are."""
    times = sorted(entry.get("times", []))
    if len(times) > 2 and times[1] > max(0.2, 2 * times[0]) and entry["time"] == times[0]:
        entry = dict(entry, time=times[1], times=[t for t in entry["times"] if t != times[0]])
    return entry


def merged(entries, several):
    """One point from all the passes that tried it: it ran if it ran in any. Of several passes
    only the times of each are kept: runs one after the other are disturbed alike."""
    ran = [without_misread(e) for e in entries if isinstance(e["time"], float)]
    best = min(ran, key=lambda e: e["time"]) if ran else entries[0]
    out = dict(best)
    if ran and several:
        out["times"] = [best["time"]]
    if len(ran) > 1:
        out["passes"] = [e["time"] for e in ran]
    return {k: v for k, v in out.items() if k in KEPT or k == "passes"}


def rounded(value):
    if isinstance(value, float):
        return float("%.6g" % value)
    return [rounded(v) for v in value] if isinstance(value, list) else value


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    out, *paths = sys.argv[1:]
    passes = [read(path) for path in paths]
    head = passes[0]
    keys = head["tune_params_keys"]
    for other in passes[1:]:
        if other["tune_params_keys"] != keys or other["problem_size"] != head["problem_size"]:
            sys.exit("merge_records.py: not passes over one space")
    lines = []
    for key in dict.fromkeys(k for p in passes for k in p["cache"]):
        found = [p["cache"][key] for p in passes if key in p["cache"]]
        entry = {k: found[0][k] for k in keys}
        entry.update((k, rounded(v)) for k, v in merged(found, len(passes) > 1).items())
        lines.append("%s: %s" % (json.dumps(key), json.dumps(entry)))
    top = ['"%s": %s' % (k, json.dumps(v)) for k, v in head.items() if k != "cache"]
    text = "{\n%s,\n\"cache\": {\n%s}\n}" % (",\n".join(top), ",\n".join(lines))
    with open(out, "wb") as file:
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            packed.write(text.encode())
    print("%s: %d points, %d of them in several passes" %
          (out, len(lines), sum('"passes"' in l for l in lines)))


if __name__ == "__main__":
    main()
