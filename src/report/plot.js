// SPDX-License-Identifier: Apache-2.0
//
// What the page of runs (page.js) is drawn with: elements, numbers, the trials and the choice
// among them, plots. The records stand in the element `data` (page.c); their texts only
// become text nodes, never markup.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const main = document.querySelector('main');
const FEW = 25, MORE = 100, LINES_MOST = 3000, VALUES_MOST = 14, LINES_DIFFED = 4000;

// Elements -------------------------------------------------------------------------------

function fill(node, props, children) {
    for (const [key, value] of Object.entries(props || {}))
        if (typeof value === 'function')
            node.addEventListener(key, value);
        else if (value === true)
            node.setAttribute(key, '');
        else if (value !== false && value !== undefined && value !== null)
            node.setAttribute(key, value);
    node.append(...children.flat(Infinity).filter(child => child || child === 0));
    return node;
}

const make = (tag, props, ...children) =>
    fill(document.createElement(tag), props, children);
const draw = (tag, props, ...children) =>
    fill(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);

function table(caption, heads, rows) {
    const numeric = heads.map((_, k) => rows.every(row => typeof row[k] !== 'string'));
    const cell = (tag, text, k, more) =>
        make(tag, {class: numeric[k] ? 'r' : null, ...more}, text ?? '–');
    return make('table', {}, make('caption', {}, caption),
        make('thead', {}, make('tr', {},
            heads.map((head, k) => cell('th', head, k, {scope: 'col'})))),
        make('tbody', {}, rows.map(row => make('tr', {},
            row.map((text, k) => cell('td', text, k))))));
}

const scroll = (label, ...children) =>
    make('div', {class: 'scroll', role: 'region', tabindex: 0, 'aria-label': label},
        children);

async function copy(text, button) {
    const label = button.textContent;
    try {
        await navigator.clipboard.writeText(text);
        button.textContent = 'Copied';
    } catch {
        button.textContent = 'Cannot copy';
    }
    setTimeout(() => button.textContent = label, 1500);
}

const copyButton = (label, text, name) => make('button',
    {type: 'button', 'aria-label': name, click: e => copy(text(), e.target)}, label);

function save(name, type, text) {
    const link = make('a', {href: URL.createObjectURL(new Blob([text], {type})),
        download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Numbers --------------------------------------------------------------------------------

const units = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]];
const unitOf = ns => units.find(unit => ns >= unit[1]) || units[3];
const digits = (x, n = 4) => x === null || !isFinite(x) ? '–'
    : Math.abs(x) >= 1e7 || (x !== 0 && Math.abs(x) < 1e-4) ? x.toExponential(2)
        : String(Number(x.toPrecision(n)));
const time = ns => {
    if (!(ns < Infinity))
        return '–';
    const [name, size] = unitOf(ns);
    return digits(ns / size) + ' ' + name;
};
const percent = x => (100 * x).toFixed(1) + ' %';
const median = sorted => (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
const range = n => [...Array(n).keys()];
const least = list => list.reduce((a, b) => Math.min(a, b), Infinity);
const most = list => list.reduce((a, b) => Math.max(a, b), -Infinity);

// Runs and their trials ------------------------------------------------------------------

// A time that is not known is Infinity here, and null in JSON.
const known = x => x ?? Infinity;

function openRun(run, number) {
    run.letter = data.runs.length > 1 ? String.fromCharCode(65 + number % 26) : '';
    run.label = run.letter ? `${run.letter}: ${run.problem}` : run.problem;
    run.best = known(run.best_ns);
    run.plain = known(run.baseline_ns);
    run.roofline = Math.max(run.copy_ns ?? 0, run.compute_ns ?? 0);
    run.names = run.parameters.map(p => p.name);
    run.all = run.trials.map((t, i) => {
        const values = t[0].map((choice, p) => run.parameters[p].values[choice]);
        return {run, number: i + 1, status: t[1], ns: known(t[2]), at: t[3],
            cut: t[8], stored: t[7], log: t[9], told: t[10] || [], front: t[11], values,
            by: new Map(values.map((value, p) => [run.names[p], value])),
            point: values.map((value, p) => `${run.names[p]}=${value}`).join(' ')};
    });
    run.ok = run.all.filter(t => t.status === 'ok');
    run.best = Math.min(run.best, data.live ? least(run.ok.map(t => t.ns)) : Infinity);
}

data.runs.forEach(openRun);
const runs = data.runs, one = runs.length === 1, trials = runs.flatMap(run => run.all);
const right = trials.filter(t => t.status === 'ok');
const fastest = least(right.map(t => t.ns)), slowest = most(right.map(t => t.ns));
const axisUnit = unitOf(Math.sqrt(fastest * slowest) || 1);
const scaled = ns => ns / axisUnit[1];
const colour = run => 'c' + runs.indexOf(run) % 8;
const failures = [...new Set(trials.map(t => t.status))].filter(s => s !== 'ok');

// The parameters of all runs, each with the values that were tried.
const params = [...new Set(runs.flatMap(run => run.names))].map(name => {
    const tried = new Set(trials.map(t => t.by.get(name)));
    const values = [...new Set(runs.flatMap(run =>
        run.parameters.filter(p => p.name === name).flatMap(p => p.values)))];
    if (values.every(value => isFinite(value)))
        values.sort((a, b) => a - b);
    return {name, values: values.filter(value => tried.has(value))};
}).filter(p => p.values.length > 1);

// What is chosen among the trials --------------------------------------------------------

const chosen = {refused: new Map(), low: 0, high: Infinity, words: '', sort: 'time',
    up: true, shown: FEW, hot: null, x: 'number'};
const followers = []; // called when the choice changes
const lights = []; // called when another trial is pointed at

const test = {'=': (a, b) => a === b, '!=': (a, b) => a !== b, '<': (a, b) => a < b,
    '>': (a, b) => a > b, '<=': (a, b) => a <= b, '>=': (a, b) => a >= b};

function numberOf(text) {
    const found = /^([\d.eE+-]+)(ns|us|µs|ms|s)?$/.exec(text);
    const unit = found && found[2] && units.find(u => u[0] === found[2].replace('u', 'µ'));
    return found ? Number(found[1]) * (unit ? unit[1] : 1) : NaN;
}

// A word is a comparison, lx>=32 or time<50us, or a part of the point, status or message.
function holds(t, word) {
    const found = /^(\w+)(<=|>=|!=|=|<|>)(.+)$/.exec(word);
    if (!found)
        return `${t.point} ${t.status} ${t.log}`.toLowerCase().includes(word.toLowerCase());
    const [, name, sign, text] = found;
    const value = name === 'time' ? t.ns : name === 'trial' ? t.number
        : name === 'status' ? t.status : t.by.get(name);
    const a = numberOf(String(value)), b = numberOf(text);
    return value !== undefined &&
        (isNaN(a) || isNaN(b) ? test[sign](String(value), text) : test[sign](a, b));
}

const refuses = (name, value) => chosen.refused.get(name)?.has(value);

function isChosen(t) {
    return !(t.ns < chosen.low || t.ns > chosen.high) &&
        !refuses('status', t.status) && !refuses('run', t.run.letter) &&
        [...t.by].every(([name, value]) => !refuses(name, value)) &&
        chosen.words.split(/\s+/).every(word => !word || holds(t, word));
}

function choose() {
    for (const t of trials)
        t.on = isChosen(t);
    followers.forEach(follow => follow());
    remember();
}

// Only these values of a parameter; all of them: no matter which.
function allow(name, values, all) {
    const refused = all.filter(value => !values.includes(value));
    if (refused.length)
        chosen.refused.set(name, new Set(refused));
    else
        chosen.refused.delete(name);
    choose();
}

function light(t, event) {
    chosen.hot = t;
    lights.forEach(show => show(t));
    const tip = document.getElementById('tip');
    tip.hidden = !t || !event;
    if (tip.hidden)
        return;
    tip.textContent = `${one ? '' : t.run.letter + ', '}trial ${t.number}: ` +
        (t.status === 'ok' ? time(t.ns) + (t.cut ? ', stopped early' : '') : t.status) +
        `\n${t.point}` + (t.log ? '\n' + t.log : '');
    const wide = document.documentElement.clientWidth;
    tip.style.left = Math.max(4, Math.min(event.pageX + 14, wide - tip.offsetWidth - 8)) + 'px';
    tip.style.top = event.pageY + 16 + 'px';
}

// The choice outlives a reload of a page that follows its run.
function remember() {
    try {
        const {words, sort, up, low, high, x} = chosen;
        sessionStorage.setItem('forewarp', JSON.stringify({words, sort, up, low, x,
            high: high < Infinity ? high : null,
            refused: [...chosen.refused].map(([name, set]) => [name, [...set]])}));
    } catch { /* no storage: nothing is kept */ }
}

function recall() {
    try {
        const kept = JSON.parse(sessionStorage.getItem('forewarp')) || {};
        Object.assign(chosen, kept, {high: known(kept.high),
            refused: new Map((kept.refused || []).map(([name, list]) =>
                [name, new Set(list)]))});
    } catch { /* likewise */ }
}

// Plots ----------------------------------------------------------------------------------

function scale(low, high, from, to, log) {
    if (!(low < high)) {
        low = log ? low / 1.5 : low - 0.5;
        high = log ? high * 1.5 : high + 0.5;
    }
    const f = log ? Math.log : x => x, span = f(high) - f(low);
    const at = x => from + (to - from) * (f(x) - f(low)) / span;
    const back = place => {
        const x = f(low) + span * (place - from) / (to - from);
        return log ? Math.exp(x) : x;
    };
    return {low, high, from, to, at, back, ticks: ticks(low, high, log)};
}

function ticks(low, high, log) {
    const list = [], decades = Math.log10(high / low);
    if (log && decades >= 0.7) {
        const steps = decades > 6 ? [1] : decades > 2 ? [1, 3] : [1, 2, 5];
        for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++)
            list.push(...steps.map(step => Number((step * 10 ** e).toPrecision(3))));
    } else {
        const rough = 10 ** Math.floor(Math.log10((high - low) / 4));
        const step = rough * ([1, 2, 5].find(k => (high - low) / (k * rough) <= 6) || 10);
        for (let k = Math.ceil(low / step); k * step <= high; k++)
            list.push(Number((k * step).toPrecision(10)));
    }
    return list.filter(x => x >= low && x <= high);
}

const label = (x, y, text, props) => draw('text', {x, y, ...props}, text);

// Axes with ticks; marks(X, Y) gives what stands between them. names: an axis of texts.
function axes(wide, high, x, y, marks) {
    const left = 64, bottom = high - 44;
    const X = x.names ? scale(-0.5, x.names.length - 0.5, left, wide - 10, false)
        : scale(x.low, x.high, left, wide - 10, x.log);
    const Y = scale(y.low, y.high, bottom, 10, y.log);
    const xTicks = x.names ? range(x.names.length) : X.ticks;
    const room = (wide - left) / Math.max(xTicks.length, 1);
    const longest = most(xTicks.map(v => String(x.names ? x.names[v] : digits(v)).length));
    const every = Math.max(1, Math.ceil(7 * longest / room));
    return [
        Y.ticks.map(v => [draw('line', {class: 'grid', x1: left, x2: wide - 10,
            y1: Y.at(v), y2: Y.at(v)}),
        label(left - 6, Y.at(v) + 4, digits(v), {class: 'end'})]),
        draw('line', {class: 'axis', x1: left, x2: wide - 10, y1: bottom, y2: bottom}),
        xTicks.map((v, k) => k % every ? null : label(X.at(v), bottom + 16,
            x.names ? x.names[v] : digits(v), {class: 'mid'})),
        label((left + wide) / 2, high - 8, x.label, {class: 'mid soft'}),
        label(14, (bottom + 10) / 2, y.label,
            {class: 'mid soft', transform: `rotate(-90 14 ${(bottom + 10) / 2})`}),
        marks(X, Y)];
}

const line = (points, props) => draw('polyline',
    {points: points.map(p => p.map(v => v.toFixed(1)).join(',')).join(' '), ...props});

function dot(x, y, t, more) {
    const hue = t.status === 'ok' ? colour(t.run) : 'c' + (3 + failures.indexOf(t.status)) % 8;
    const common = {class: `dot ${hue} ${t.on ? '' : 'off'}`, ...more};
    if (t.status !== 'ok')
        return draw('path', {d: `M${x - 3} ${y - 3}l6 6m0-6l-6 6`, ...common});
    return draw('circle', {cx: x.toFixed(1), cy: y.toFixed(1), r: t.cut ? 2.6 : 2.4,
        ...common, class: common.class + (t.cut ? ' ring' : '')});
}

// A picture whose dots are trials: the nearest is pointed at.
function points(svg, places) {
    const ring = draw('circle', {class: 'hot', r: 6, visibility: 'hidden'});
    svg.append(ring);
    lights.push(hot => {
        const place = hot && places.find(p => p.t === hot);
        ring.setAttribute('visibility', place ? 'visible' : 'hidden');
        if (place)
            fill(ring, {cx: place.x, cy: place.y}, []);
    });
    svg.addEventListener('pointermove', event => {
        const box = svg.getBoundingClientRect(), x = event.clientX - box.left,
            y = event.clientY - box.top;
        let near = null, distance = 400;
        for (const p of places) {
            const d = (p.x - x) ** 2 + (p.y - y) ** 2;
            if (d < distance && p.t.on)
                [near, distance] = [p, d];
        }
        light(near && near.t, event);
    });
    svg.addEventListener('pointerleave', () => light(null));
}

const figures = [];

// A titled picture, drawn as wide as there is room, and the same as a table.
function figure(parent, id, title, about, height, body, asTable, least = 0) {
    const box = make('div', {class: 'plot'});
    const name = `${parent.querySelector('h2').textContent}: ${title}`;
    const details = make('details', {toggle: () => {
        if (details.open && details.children.length === 1)
            details.append(scroll(`${name}, table`, asTable()));
    }}, make('summary', {}, `As a table`, make('span', {class: 'hide'}, `: ${name}`)));
    const paint = () => {
        const wide = Math.max(main.clientWidth - 34, 280, least);
        const svg = draw('svg', {role: 'img', 'aria-label': name, width: wide, height,
            viewBox: `0 0 ${wide} ${height}`});
        fill(svg, {}, body(wide, height, svg).flat(Infinity));
        box.replaceChildren(svg);
    };
    const saving = make('button', {type: 'button', 'aria-label': `Save SVG: ${name}`,
        click: () => {
            const svg = box.querySelector('svg').cloneNode(true);
            svg.prepend(draw('style', {}, document.querySelector('style').textContent));
            save(`${id}.svg`, 'image/svg+xml', new XMLSerializer().serializeToString(svg));
        }}, 'Save SVG');
    if (least)
        fill(box, {class: 'plot scroll', role: 'region', tabindex: 0,
            'aria-label': `${name}, picture`}, []);
    parent.append(make('figure', {id}, make('h3', {}, title), box,
        make('figcaption', {}, about), make('div', {class: 'tools'}, saving, details)));
    figures.push(paint);
    return paint;
}

const legend = items => make('ul', {class: 'legend'}, items.map(([hue, kind, text]) =>
    make('li', {}, draw('svg', {width: 22, height: 12, 'aria-hidden': 'true'},
        kind === 'line' || kind === 'dash'
            ? draw('line', {x1: 1, x2: 21, y1: 6, y2: 6, class: `line ${hue} ${kind}`})
            : kind === 'cross'
                ? draw('path', {d: 'M8 3l6 6m0-6l-6 6', class: `dot ${hue}`})
                : draw('circle', {cx: 11, cy: 6, r: 3.5, class: `dot ${hue} ${kind}`})),
    text)));
