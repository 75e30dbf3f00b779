#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the recorded stencils of one folder over into another (data/stencils/record.sh says what
both hold): a stencil that is in both is replaced where the new record has the same parts or
more and no smaller a sample. Times are rounded to ns, and keys that nothing reads are dropped:
half of the bytes.

    bench/merge_studies.py INTO FROM
"""
import csv
import gzip
import json
import os
import sys

DROPPED = ("verification_time", "benchmark_time", "strategy_time", "framework_time", "timestamp")


def rows(folder):
    path = os.path.join(folder, "index.csv")
    if not os.path.exists(path):
        return [], {}
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        return reader.fieldnames, {row["file"]: row for row in reader}


def slim(entry):
    out = {key: value for key, value in entry.items() if key not in DROPPED}
    if isinstance(out.get("time"), float):  # a point that failed may have none
        out["time"] = round(out["time"], 6)
    if "times" in out:
        out["times"] = [round(time, 6) for time in out["times"]]
    if "compile_time" in out:
        out["compile_time"] = round(out["compile_time"], 2)
    return out


def take_over(name, source, into):
    with gzip.open(os.path.join(source, name), "rt") as file:
        record = json.load(file)
    record["cache"] = {key: slim(entry) for key, entry in record["cache"].items()}
    text = json.dumps(record, separators=(",", ":")).encode()
    with open(os.path.join(into, name), "wb") as file:
        file.write(gzip.compress(text, 9, mtime=0))


def main(into, source):
    fields, found = rows(source)
    old_fields, kept = rows(into)
    for name, row in found.items():
        old = kept.get(name)
        if old and (int(old["sample"]) > int(row["sample"]) or not
                    set(old["parts"].split("+")) - {"more", "without_image"} <= set(row["parts"].split("+"))):
            continue
        take_over(name, source, into)
        kept[name] = row
    with open(os.path.join(into, "index.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, old_fields or fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[name] for name in sorted(kept))
    print(f"{len(found)} of {source}, {len(kept)} in {into}")


if __name__ == "__main__":
    main(*sys.argv[1:])
