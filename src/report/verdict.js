// SPDX-License-Identifier: Apache-2.0
//
// What the page (page.js) says first: of one run how sure its best is, what limits it, what to
// try next; of several which won, by how much, and whether they are comparable. Every sentence
// follows from numbers of the record; what the record does not tell is not guessed.
'use strict';

// A gain below this is taken for chance.
const GAIN = 0.01, LIMITED = 0.75;
const FEW_TRIALS = 30; // no search has shown by then what it finds
// Numbers that stay beside their units where a line breaks.
const share = x => percent(x).replace(' ', '\u00a0');
const span = ns => time(ns).replace(' ', '\u00a0');
const count = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;
const difference1 = (a, b) => Math.max(a, b) / Math.min(a, b) - 1;
const byTime = run => run.objectives.length === 1 && run.objectives[0] === 'min time';
const bestTrial = run => run.ok.find(t => t.point === run.best_point);
const spelt = list => list.length < 2 ? list.join('') :
    `${list.slice(0, -1).join(', ')} and ${list[list.length - 1]}`;

// How sure ------------------------------------------------------------------------------

function rightness(run) {
    const more = run.reference.match(/the best is right for (\d+) more inputs/);
    if (/no time to run the best on more inputs/.test(run.reference))
        return 'Its outputs are right for one set of inputs; there was no time for more.';
    return more ? `Its outputs are right for ${+more[1] + 1} sets of inputs.`
        : `Its outputs were checked: ${run.reference}.`;
}

// The trials whose times do not tell them from the best.
function rivals(run) {
    const first = bestTrial(run), again = first ? difference1(first.ns, run.best) : 0;
    const margin = Math.max(0.02, again);
    const near = run.ok.filter(t => t !== first && !t.cut && t.ns < run.best * (1 + margin));
    const text = near.length
        ? `${count(near.length, 'other trial')} took at most ${share(margin)} longer: which of ` +
          'them is the fastest is open.'
        : `No other of ${run.ok.length} right trials came within ${share(margin)} of it.`;
    return first && again > GAIN
        ? `Measured again at the end, its time was ${share(again)} ` +
          `${run.best > first.ns ? 'longer' : 'shorter'}. ${text}` : text;
}

function coverage(run) {
    const points = run.space_points;
    if (run.all.length >= points)
        return 'Every point of the space was tried.';
    return `${run.all.length} of ${digits(points)} points were tried ` +
        `(${run.all.length < points / 1000 ? 'less than 0.1\u00a0%'
            : share(run.all.length / points)}): the others are unknown.`;
}

// What limits ---------------------------------------------------------------------------

function rooflines(run) {
    return [['Memory', run.copy_ns, 'copying the bytes that it must move'],
        ['Arithmetic', run.compute_ns, 'its arithmetic']].filter(f => f[1] > 0);
}

function limits(run) {
    const list = rooflines(run), part = run.roofline / run.best;
    if (!list.length)
        return ['The record does not tell: the speeds of the device were not measured.'];
    const [name] = list.reduce((a, b) => a[1] >= b[1] ? a : b);
    const told = [make('strong', {}, part > 1 ? 'Not what was measured of the device: '
        : part >= LIMITED ? `${name}: ` : 'Neither memory nor arithmetic alone: '),
    `the best takes ${span(run.best)}, and has ${share(part)} of the roofline’s speed. On ` +
        `this device ${spelt(list.map(([, ns, what]) => `${what} takes ${span(ns)}`))}.`];
    if (part > 1)
        return [told, ' Data that stay in caches are faster than the copy that was measured.'];
    return [told, part >= LIMITED ? '' : ' The record does not tell whether the rest is ' +
        'waiting (latency), other instructions or bytes moved again.', spills(run)];
}

function spills(run) {
    const at = run.metrics.indexOf('spilled'), best = bestTrial(run);
    return at >= 0 && best && best.told[at] > 0
        ? ` The kernel spills registers to memory (${digits(best.told[at])}).` : '';
}

// What next -----------------------------------------------------------------------------

// The last trial that was faster than all before it by more than chance.
function lastGain(run) {
    let best = Infinity, last = null;
    for (const t of run.ok) {
        if (t.ns < (1 - GAIN) * best)
            last = t;
        best = Math.min(best, t.ns);
    }
    return last;
}

function searchAdvice(run) {
    const last = lastGain(run), n = run.all.length;
    if (n >= run.space_points)
        return run.kind === 'template' ? 'All points are tried: add values to the parameters.'
            : ['All points are tried: ', make('code', {}, '--extra'), ' adds more to the space.'];
    const late = last.number > 0.6 * n;
    if (late || n < FEW_TRIALS)
        return [late ? `The search was still gaining: the last gain of 1 % came at trial ` +
            `${last.number} of ${n}.` : `The search tried only ${count(n, 'point')}.`,
        ' Run the command again with a larger ', make('code', {}, '--budget'),
        ': it goes on from the trials in the store.'];
    return [`The last gain of 1 % came at trial ${last.number} of ${n}: more of the same search ` +
        'may bring little. Try another ', make('code', {}, '--strategy'), ' or ',
    make('code', {}, '--seed'), '.'];
}

function failureAdvice(run) {
    const failed = run.all.length - run.ok.length;
    if (failed <= run.all.length / 3)
        return '';
    const counts = failures.map(s => [s, run.all.filter(t => t.status === s).length]);
    const [status, n] = counts.reduce((a, b) => b[1] > a[1] ? b : a);
    return [` ${failed} of ${run.all.length} trials failed, ${n} of them as ${status}: the table ` +
        'of trials says why; ', make('code', {}, '--where'), ' can leave such points out.'];
}

function advice(run) {
    const part = run.roofline / run.best;
    if (run.roofline > 0 && part >= 0.9)
        return ['Little is left: a kernel at the roofline would take ' +
            `${share(Math.max(0, 1 - part))} less time. More is to be had from fewer bytes or ` +
            'operations: of other types, or in one kernel with what comes before or after (',
        make('code', {}, 'forewarp fuse'), ').', failureAdvice(run)];
    return [searchAdvice(run), failureAdvice(run)];
}

// One run -------------------------------------------------------------------------------

function verdict(run) {
    if (data.live)
        return null;
    const rows = run.best < Infinity && run.ok.length
        ? [['How sure is the best?', [rightness(run), ' ', rivals(run), ' ', coverage(run)]],
            ['What limits it?', limits(run)], ['What to try next?', advice(run)]]
        : [['What came of it?', `No candidate was built, right and in time: ${run.all.length} ` +
            'trials failed.'],
        ['What to try next?', failureAdvice(run) || 'A longer budget.']];
    return make('dl', {class: 'verdict', id: 'verdict'}, rows.map(([question, answer]) =>
        make('div', {}, make('dt', {}, question), make('dd', {}, answer))));
}

// Several runs --------------------------------------------------------------------------

// What makes times of runs measure different things.
function differences() {
    const kinds = [['problems', run => run.problem], ['devices', run => run.device.fingerprint],
        ['arithmetic (--math)', run => run.math]];
    return kinds.filter(([, of]) => new Set(runs.map(of)).size > 1).map(([name]) => name);
}

// The plain kernel is the same program in both: its times differ by chance.
function chance(a, b) {
    return a.plain_kernel && a.plain_kernel === b.plain_kernel && a.plain < Infinity &&
        b.plain < Infinity ? difference1(a.plain, b.plain) : null;
}

function winner(sorted) {
    const [first, second] = sorted, gap = difference1(first.best, second.best);
    const noise = chance(first, second);
    const plain = noise === null ? '' : ` The plain kernel, the same text in both, took ` +
        `${span(first.plain)} and ${span(second.plain)}, which differ by ${share(noise)}.`;
    const same = first.best_point === second.best_point ? ' Both found the same point.' : '';
    if (gap <= Math.max(GAIN, noise || 0))
        return [make('strong', {}, `No run won: ${first.letter} and ${second.letter} differ by ` +
            `${share(gap)}`), ` (${span(first.best)} and ${span(second.best)}), which is no more ` +
            `than chance.${plain}${same}`];
    return [make('strong', {}, `${first.letter} won: its best takes ${share(1 - first.best /
        second.best)} less time than that of ${second.letter}`),
    ` (${span(first.best)} and ${span(second.best)}).${plain}${same}`];
}

function verdictOfRuns() {
    const wrong = differences(), sorted = runs.filter(run => run.best < Infinity)
        .sort((a, b) => a.best - b.best);
    const versions = [...new Set(runs.map(run => run.version))];
    const older = versions.length > 1
        ? ` Different versions of forewarp made the kernels (${spelt(versions)}).` : '';
    const none = runs.filter(run => !(run.best < Infinity)).map(run => run.letter);
    const failed = none.length ? ` No candidate was right in ${spelt(none)}.` : '';
    const say = (...text) => make('p', {class: 'note', id: 'verdict'}, text);
    if (wrong.length)
        return say(make('strong', {}, 'These runs are not comparable: '),
            `they are of different ${spelt(wrong)}. Their times stand side by side, but do not ` +
            `measure the same thing.${older}${failed}`);
    if (!runs.every(byTime))
        return say('These runs are of the same problem and device, but not all of them seek the ' +
            `least time: the table compares only times.${older}${failed}`);
    return say(sorted.length < 2 ? '' : winner(sorted),
        ' The runs are comparable: they have the same problem, device and arithmetic.',
        older, failed);
}
