# forewarp report: the page stands alone, is well formed, shows what the record says, and a
# browser opens it without a complaint.
. test/cli/common
stores "$tmp/s.db"

passes "tune" "$FOREWARP" tune examples/jacobi2d.fw -s N=96,M=64 -q --budget 36t --seed 3 \
    --store "$tmp/s.db" -o "$tmp/out"
record=$tmp/out/jacobi2d.run.json
holds "the record: all trials" "$record" 'len(j["trials"]) == 36 and j["problem"] == "jacobi2d N=96 M=64"'
holds "the record: the best is one of them" "$record" \
    'any(" ".join(p["name"] + "=" + p["values"][c] for p, c in zip(j["parameters"], t[0])) == j["best_point"] for t in j["trials"])'
holds "the record: the command" "$record" '"examples/jacobi2d.fw" in j["command"] and j["seed"] == 3'
passes "report of a folder" "$FOREWARP" report "$tmp/out"
page=$tmp/out/jacobi2d.html
passes "report of a file, with plots" "$FOREWARP" report "$record" --html "$tmp/p.html" --svg "$tmp/svg"
cmp -s "$page" "$tmp/p.html" && ok "the same page" || not_ok "the same page"
passes "report to standard output" sh -c "'$FOREWARP' report '$record' --html - | cmp - '$page'"

# Elements nest; nothing is loaded; what the record says is there; the kernel is whole.
cat >"$tmp/page.py" <<'END'
import html, html.parser, json, re, sys
void = {"meta", "link", "br", "img"}
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text, self.seen, self.bad = [], [], [], []
    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in void:
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append(tag)
    def handle_data(self, data):
        self.text.append(data)
text, record = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
page = Page()
page.feed(text)
page.close()
assert not page.open and not page.bad, (page.open, page.bad)
assert text.startswith("<!DOCTYPE html>")
assert not [t for t, a in page.seen if t in ("script", "iframe", "object", "embed", "base", "form")]
for tag, attrs in page.seen:
    for key, value in attrs.items():
        assert not key.startswith("on"), (tag, key)
        if key in ("src", "href", "action", "data"):
            assert value == "data:,", (tag, key, value)
assert "url(" not in text and "@import" not in text
said = "".join(page.text)
assert record["kernel"].strip() in said.replace("\r", ""), "the kernel"
assert record["command"] in said and record["problem"] in said
ok = sum(t[1] == "ok" for t in record["trials"])
figures = re.findall(r'<figure id="(\w+)">(.*?)</figure>', text, re.S)
assert {"search", "distribution"} <= {f for f, _ in figures} or not ok
for name, body in figures:
    assert "nan" not in re.sub(r"<[^t][^>]*>", "", body).split() and len(body) > 400, name
if ok:
    dots = dict(figures)["search"].count("<circle")
    assert dots == len(record["trials"]), dots
print(*[f for f, _ in figures])
END
passes "the page is whole" "$PYTHON" "$tmp/page.py" "$page" "$record"
mv "$tmp/stdout" "$tmp/plots"
for plot in search distribution importance parameters pair predicted features roofline; do
    grep -qw $plot "$tmp/plots" && [ -s "$tmp/svg/$plot.svg" ] && ok "plot $plot" || not_ok "plot $plot"
    if command -v xmllint >/dev/null; then
        passes "well-formed XML: $plot" xmllint --noout "$tmp/svg/$plot.svg"
    fi
done

# A template, whose names are not kind, some of whose points fail.
odd="$tmp/o & <b>'\"; x.json"
cp templates/transpose.json "$odd"
cp templates/transpose.cl templates/transpose_reference.c "$tmp"
passes "tune a template" "$FOREWARP" tune "$odd" -s H=64,W=48 -q --budget 34t --strategy random \
    --store "$tmp/s.db" -o "$tmp/odd out"
passes "report of it" "$FOREWARP" report "$tmp/odd out" --html "$tmp/odd.html"
passes "the page is whole" "$PYTHON" "$tmp/page.py" "$tmp/odd.html" "$tmp/odd out/"*.run.json
for plot in search distribution importance parameters predicted; do
    grep -qw $plot "$tmp/stdout" && ok "of a template: $plot" || not_ok "of a template: $plot" "$(cat "$tmp/stdout")"
done
grep -qw -e features -e roofline "$tmp/stdout" && not_ok "no features of a template" || ok "no features of a template"

# Nothing was right: there is a record, and a page of it.
cat >"$tmp/wrong.json" <<'END'
{"files": "wrong.cl", "sizes": {"N": 64}, "parameters": {"A": [1, 2]},
 "arguments": [{"name": "out", "type": "float", "shape": ["N"], "access": "out"}],
 "launch": {"kernel": "wrong", "groups": [1], "local": ["N"]},
 "reference": {"c": "wrong_reference.c", "function": "right"}}
END
echo 'kernel void wrong(global float *out) { out[get_global_id(0)] = 1; }' >"$tmp/wrong.cl"
echo 'void right(float *out) { for (int i = 0; i < 64; i++) out[i] = 2; }' >"$tmp/wrong_reference.c"
fails 1 "no candidate was built, right and in time" "$FOREWARP" tune "$tmp/wrong.json" -q \
    --budget 2t --store "$tmp/s.db" -o "$tmp/wrong"
passes "report of nothing right" "$FOREWARP" report "$tmp/wrong" --html "$tmp/wrong.html"
passes "the page is whole" "$PYTHON" "$tmp/page.py" "$tmp/wrong.html" "$tmp/wrong/wrong.run.json"
grep -q "No candidate was built" "$tmp/wrong.html" && ok "and says so" || not_ok "and says so"

# What is no record.
fails 1 "absent.run.json" "$FOREWARP" report "$tmp/absent.run.json"
mkdir "$tmp/empty"
fails 2 "holds no record" "$FOREWARP" report "$tmp/empty"
echo '{"a": 1}' >"$tmp/empty/a.run.json"
fails 2 "it is no record of tuning" "$FOREWARP" report "$tmp/empty"
head -c 3000 "$record" >"$tmp/empty/b.run.json"
fails 2 "several records" "$FOREWARP" report "$tmp/empty"
fails 2 "cannot use" "$FOREWARP" report "$tmp/empty/b.run.json"
sed 's/^\[\[[0-9]*,/[[999,/' "$record" >"$tmp/empty/c.run.json"
fails 2 "its trials are damaged" "$FOREWARP" report "$tmp/empty/c.run.json"
fails 1 "/absent/p.html" "$FOREWARP" report "$record" --html /absent/p.html

# The browser's own view: no message on its console, all circles drawn, something to see.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ]; then
    echo "skip the page in Chromium: it is not installed"
    finish
fi
view() {
    timeout 1800 "$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr \
        --user-data-dir="$tmp/chromium" --window-size=1000,3000 "$@" 2>"$tmp/log"
}
for file in "$page" "$tmp/odd.html"; do
    cp "$file" "$tmp/view.html"
    view --dump-dom "file://$tmp/view.html" >"$tmp/dom"
    if grep -q "CONSOLE" "$tmp/log"; then
        not_ok "no message on the console" "$(grep CONSOLE "$tmp/log" | head -n 3)"
    else
        ok "no message on the console"
    fi
    want=$(grep -c '<circle' "$file")
    [ "$(grep -c '<circle' "$tmp/dom")" = "$want" ] && ok "$want circles in the browser" ||
        not_ok "$want circles in the browser"
done
cp "$page" "$tmp/view.html"
view --screenshot="$tmp/shot.png" "file://$tmp/view.html" >/dev/null
[ "$(wc -c <"$tmp/shot.png")" -gt 30000 ] && ok "a picture of the page" || not_ok "a picture of the page"
finish
