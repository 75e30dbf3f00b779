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
passes "report of a file" "$FOREWARP" report "$record" -o "$tmp/p.html"
cmp -s "$page" "$tmp/p.html" && ok "the same page" || not_ok "the same page"
passes "report to standard output" sh -c "'$FOREWARP' report '$record' -o - | cmp - '$page'"

# Elements nest; nothing is loaded, and no script but the page's own may run; the data are the
# records.
cat >"$tmp/page.py" <<'END'
import html.parser, json, re, sys
void = {"meta", "link", "br", "img"}
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.data, self.seen, self.bad = [], "", [], []
    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in void:
            self.open.append(tag)
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append(tag)
    def handle_data(self, data):
        if self.open[-1:] == ["script"] and self.seen[-1][1].get("id") == "data":
            self.data += data
page, records = Page(), [json.load(open(f)) for f in sys.argv[2:]]
text = open(sys.argv[1]).read()
page.feed(text)
page.close()
assert not page.open and not page.bad, (page.open, page.bad)
assert text.startswith("<!DOCTYPE html>")
assert not [t for t, a in page.seen if t in ("iframe", "object", "embed", "base", "form")]
nonce = re.search(r"default-src 'none'; .*script-src 'nonce-(\w+)'\"", text).group(1)
for tag, attrs in page.seen:
    assert tag != "script" or attrs.get("nonce") == nonce or attrs["id"] == "data"
    for key, value in attrs.items():
        assert not key.startswith("on"), (tag, key)
        if key in ("src", "href", "action", "data"):
            assert value == "data:,", (tag, key, value)
assert "url(" not in text and "@import" not in text
runs = json.loads(page.data)["runs"]
assert len(runs) == len(records)
for run, record in zip(runs, records):
    a = run.pop("analysis")
    assert run.keys() == record.keys()
    for k in run.keys() - {"trials"}:
        same = run[k] == record[k] or abs(run[k] - record[k]) < 1e-6 * abs(record[k])
        assert same, (k, run[k], record[k])
    assert [t[:2] for t in run["trials"]] == [t[:2] for t in record["trials"]]
    print(*(["kernels"] if record["kernel"] else []), *(["plain"] if record["plain_kernel"] else []),
          *(["importance"] if a["explained"] is not None else []),
          *(["features", "intensity"] if a.get("intensity") and a["features"] else []),
          *("predicted" for p in a["predicted"]))
END
passes "the page is whole" "$PYTHON" "$tmp/page.py" "$page" "$record"
for part in kernels plain importance features intensity predicted; do
    grep -qw $part "$tmp/stdout" && ok "the page has $part" || not_ok "the page has $part"
done

# Two runs, the second followed while it went on, which leaves the page of a run that ended.
passes "tune --live" "$FOREWARP" tune examples/jacobi2d.fw -s N=96,M=64 -q --budget 34t --seed 4 \
    --strategy random --store "$tmp/s2.db" -o "$tmp/out2" --live
second=$tmp/out2/jacobi2d.run.json
grep -q '"live":false' "$tmp/out2/jacobi2d.html" && ok "its page at the end" || not_ok "its page at the end"
passes "report of two" "$FOREWARP" report "$record" "$tmp/out2" -o "$tmp/two.html"
passes "the page is whole" "$PYTHON" "$tmp/page.py" "$tmp/two.html" "$record" "$second"
fails 2 "--live is not for ranges of sizes" "$FOREWARP" tune examples/jacobi2d.fw -s N=64:128,M=64 --live

# A template, whose names are not kind, some of whose points fail.
odd="$tmp/o & <b>'\"; x.json"
cp templates/transpose.json "$odd"
cp templates/transpose.cl templates/transpose_reference.c "$tmp"
passes "tune a template" "$FOREWARP" tune "$odd" -s H=64,W=48 -q --budget 34t --strategy random \
    --store "$tmp/s.db" -o "$tmp/odd out"
passes "report of it" "$FOREWARP" report "$tmp/odd out" -o "$tmp/odd.html"
passes "the page is whole" "$PYTHON" "$tmp/page.py" "$tmp/odd.html" "$tmp/odd out/"*.run.json
for part in kernels importance predicted; do
    grep -qw $part "$tmp/stdout" && ok "of a template: $part" || not_ok "of a template: $part" "$(cat "$tmp/stdout")"
done
grep -qw features "$tmp/stdout" && not_ok "no features of a template" || ok "no features of a template"

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
passes "report of nothing right" "$FOREWARP" report "$tmp/wrong" -o "$tmp/wrong.html"
passes "the page is whole" "$PYTHON" "$tmp/page.py" "$tmp/wrong.html" "$tmp/wrong/wrong.run.json"

passes "report of different problems" "$FOREWARP" report "$record" "$tmp/odd out" -o "$tmp/differ.html"

# What is no record.
fails 1 "absent.run.json" "$FOREWARP" report "$tmp/absent.run.json"
mkdir "$tmp/empty"
fails 2 "holds no record" "$FOREWARP" report "$tmp/empty"
echo '{"a": 1}' >"$tmp/empty/a.run.json"
fails 2 "it is not a record of a tuning" "$FOREWARP" report "$tmp/empty"
head -c 3000 "$record" >"$tmp/empty/b.run.json"
cp "$record" "$tmp/empty/z.run.json"
touch -d "1 hour" "$tmp/empty/z.run.json"
passes "the latest of several records" "$FOREWARP" report "$tmp/empty" -o "$tmp/latest.html"
grep -q '3 records; this is the latest, .*z.run.json' "$tmp/stderr" && ok "says so" || not_ok "says so" "$(cat "$tmp/stderr")"
fails 2 "cannot use" "$FOREWARP" report "$tmp/empty/b.run.json"
sed 's/^\[\[[0-9]*,/[[999,/' "$record" >"$tmp/empty/c.run.json"
fails 2 "its trials are damaged" "$FOREWARP" report "$tmp/empty/c.run.json"
fails 1 "/absent/p.html" "$FOREWARP" report "$record" -o /absent/p.html
fails 2 "-o is given twice" "$FOREWARP" report "$record" -o "$tmp/p.html" --out "$tmp/q.html"

# The browser's own view: no message on its console; what is drawn, and what hands do there.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ]; then
    echo "skip the page in Chromium: it is not installed"
    finish
fi
view() {
    timeout 1800 "$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr \
        --user-data-dir="$tmp/chromium" --virtual-time-budget=60000 "$@" 2>"$tmp/log"
}
# seen PAGE SCRIPT WHAT: the script, run in the page (in a frame as wide as WIDTH), ends true.
seen() {
    "$PYTHON" - "$1" "$2" >"$tmp/inner.html" <<'END'
import re, sys
page = re.sub(r"<meta http-equiv=[^>]*>", "", open(sys.argv[1]).read())
run = """<script>
const all = what => [...document.querySelectorAll(what)];
const rows = () => all('.trials tbody tr').map(row => row.trial);
const type = (id, text) => { const box = document.getElementById(id); box.value = text;
    box.dispatchEvent(new Event('input')); };
(async () => (%s)())().then(said => said === true ? 'yes' : 'no: ' + JSON.stringify(said), e => 'no: ' + e)
    .then(said => parent.postMessage(said, '*'));</script></body>""" % sys.argv[2]
print(page.replace("</body>", run))
END
    echo "<body><script>onmessage = e => document.body.dataset.said = e.data</script>
        <iframe src=inner.html width=${WIDTH-1280} height=2000 style=border:0></iframe></body>" >"$tmp/view.html"
    view --window-size=1400,2100 ${DARK:+--force-dark-mode} --dump-dom "file://$tmp/view.html" >"$tmp/dom"
    if grep -q 'data-said="yes"' "$tmp/dom" && ! grep -q CONSOLE "$tmp/log"; then
        ok "$3"
    else
        not_ok "$3" "$(grep -o 'data-said="[^"]*"' "$tmp/dom"; grep CONSOLE "$tmp/log" | head -n 3)"
    fi
}
cat >"$tmp/hands.js" <<'END'
async () => {
    const head = name => all('.trials th button').find(b => b.textContent === name);
    const tests = {
        'a dot a trial': () => all('#search .dot').length === trials.length && trials.length === 36,
        'the figures': () => ['search', 'distribution', 'coordinates', 'importance', 'parameters',
            'predicted', 'features', 'roofline'].every(id => document.querySelector(`#${id} svg`)),
        'a filter by words': () => {
            type('words', 'lx>=16 status=ok');
            const wanted = trials.filter(t => t.by.get('lx') >= 16 && t.ns < Infinity);
            return wanted.length > 0 && wanted.length < 36 && rows().every(t => wanted.includes(t)) &&
                all('#search .dot.off').length === 36 - wanted.length;
        },
        'a filter by a box': () => {
            type('words', '');
            const box = document.querySelector('.filters input[type=checkbox]');
            const name = box.closest('fieldset').querySelector('legend').textContent;
            box.click();
            const left = rows(), value = box.parentNode.textContent.trim();
            box.click();
            return left.length > 0 && left.every(t => (t.by.get(name) ?? t.status) !== value) &&
                trials.every(t => t.on);
        },
        'a brush along the axis of time keeps the fastest': () => {
            const grip = all('#coordinates .grip').pop(), box = grip.getBoundingClientRect();
            const at = (kind, y) => all('#coordinates .grip').pop().dispatchEvent(new PointerEvent(kind,
                {clientX: box.left + 9, clientY: y, pointerId: 1, bubbles: true}));
            grip.setPointerCapture = () => {};
            at('pointerdown', box.bottom - 60);
            at('pointermove', box.bottom);
            at('pointerup', box.bottom);
            const kept = trials.filter(t => t.on), slow = Math.max(...kept.map(t => t.ns));
            all('button').find(b => b.textContent === 'Show all').click();
            return kept.length > 0 && kept.length < 36 && trials.every(t => t.on) &&
                trials.every(t => t.ns > slow || kept.includes(t));
        },
        'sorted by a column': () => {
            head('trial').click();
            head('trial').click();
            return rows()[0].number === 36 &&
                head('trial').parentNode.getAttribute('aria-sort') === 'descending';
        },
        'the trial of a row is shown in the plots': () => {
            const row = document.querySelector('.trials tbody tr');
            row.dispatchEvent(new PointerEvent('pointerenter'));
            return chosen.hot === row.trial &&
                all('circle.hot').some(c => c.getAttribute('visibility') === 'visible');
        },
        'what differs from the plain kernel': () => {
            const text = kind => all(`#difference ${kind}`).map(e => e.textContent.slice(2).trim());
            return (text('ins').length > 0 || runs[0].kernel === runs[0].plain_kernel) && text('del').every(l => runs[0].plain_kernel.includes(l)) &&
                text('ins').every(l => runs[0].kernel.includes(l));
        }};
    return Object.keys(tests).find(name => !tests[name]()) ?? true;
}
END
seen "$page" "$(cat "$tmp/hands.js")" "figures, filters, brush, order, what differs"
seen "$tmp/two.html" "() => { type('words', ''); const letters = new Set(trials.map(t => t.run.letter));
    return letters.size === 2 && all('#search .best').length === 2 && all('#coordinates .grip').length > 3 &&
        all('table')[0].rows.length === 3 &&
        (runs[0].kernel === runs[1].kernel ? !all('ins, del').length : all('ins, del').length > 0); }" "two runs side by side"
# What a reader asks first: of one run, of two, of two that measure different things.
seen "$page" "() => { const text = document.getElementById('verdict').innerText;
    return all('#verdict dt').map(q => q.innerText).join() === 'How sure is the best?,What limits it?,What to try next?' &&
        /right for \\d+ sets of inputs|were checked/.test(text) && /36 of \\d+ points/.test(text) &&
        /memory|arithmetic|not measured|does not tell/i.test(text) && /trial \\d+ of 36|roofline would take/.test(text) || text; }" \
    "how sure, what limits, what next"
seen "$tmp/two.html" "() => { const text = document.getElementById('verdict').innerText;
    const [a, b] = runs.map(r => r.best), gap = Math.max(a, b) / Math.min(a, b) - 1;
    return text.includes('The runs are comparable') && (text.startsWith((a < b ? 'A' : 'B') + ' won: ') ?
        gap > 0.01 : text.startsWith('No run won: ')) && text.includes(runs[0].letter) || text; }" "which run won"
seen "$tmp/differ.html" "() => { const text = document.getElementById('verdict').innerText;
    return text.startsWith('These runs are not comparable: they are of different problems') && !text.includes(' won') || text; }" \
    "runs that are not comparable"
seen "$tmp/wrong.html" "() => /No candidate was built.*2 trials failed/.test(document.getElementById('verdict').innerText)" \
    "what came of nothing right"
for WIDTH in 390 1280; do
    seen "$tmp/two.html" "() => { const wide = all('table')[0].scrollWidth, room = main.clientWidth;
        return wide <= room && !all('table')[0].closest('.scroll') || [wide, room]; }" "the first table fits $WIDTH"
    seen "$page" "() => { const end = document.getElementById('verdict').getBoundingClientRect().bottom;
        return end < 900 || end; }" "what a reader asks is on the first screen of $WIDTH"
done
WIDTH=1280
seen "$tmp/odd.html" "() => all('#roofline-part, #roofline svg').length > 0 && all('#features').length === 0" \
    "the roofline of a template"
seen "$tmp/wrong.html" "() => document.body.textContent.includes('No candidate was built')" "nothing right"

# Nothing is wider than the page; axe finds nothing that keeps people from reading it, with all
# tables open.
axe=${AXE:-$("$PYTHON" -c '
import glob, importlib.util
for name in "axe_playwright_python", "axe_core_python":
    found = importlib.util.find_spec(name)
    if found:
        print(*glob.glob(found.submodule_search_locations[0] + "/axe.min.js"))
        break')}
[ -n "$axe" ] || echo "skip axe: neither AXE=.../axe.min.js nor the Python package axe-playwright-python is there"
for file in "$page" "$tmp/two.html" "$tmp/odd.html"; do
    { sed 's|^</body>$||' "$file"; [ -z "$axe" ] || { echo '<script>'; cat "$axe"; echo '</script>'; }; echo '</body>'; } >"$tmp/axe.html"
    for how in 390 1280,dark; do
        case $how in *,dark) DARK=1 ;; *) DARK= ;; esac
        WIDTH=${how%,dark}
        seen "$tmp/axe.html" "async () => { const wide = document.documentElement.scrollWidth;
            if (innerWidth != $WIDTH || wide > $WIDTH) return wide;
            if (!window.axe) return true;
            all('details').forEach(d => d.open = true); await new Promise(done => setTimeout(done, 100));
            const found = await axe.run();
            return found.passes.length > 20 && (found.violations.length === 0 || found.violations.map(v =>
                [v.id, v.nodes[0].html])); }" "${file##*/} at $how: nothing is cut${axe:+, axe finds nothing}"
    done
done
finish
