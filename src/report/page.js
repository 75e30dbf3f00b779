// SPDX-License-Identifier: Apache-2.0
//
// The page of one run or several, part by part, drawn with plot.js.
'use strict';

// The page's parts -----------------------------------------------------------------------

function section(title, id) {
    const node = make('section', {id, 'aria-labelledby': id + '-title'},
        make('h2', {id: id + '-title'}, title));
    main.append(node);
    return node;
}

function summary() {
    const newest = runs[0];
    main.append(make('h1', {}, one ? newest.problem : runs.every(sameAsFirst)
        ? `${runs.length} runs of ${newest.problem}` : `${runs.length} runs`));
    if (one)
        main.append(make('p', {class: 'soft'},
            `on ${newest.device.device}, tuned ${newest.when.slice(0, 16)} UTC`));
    if (data.live)
        main.append(follow());
    if (!one)
        main.append(verdictOfRuns(), comparison());
    else
        main.append(make('dl', {class: 'tiles'}, facts(newest).map(([value, name]) =>
            make('div', {class: 'tile'}, make('dt', {}, name), make('dd', {}, value)))),
        verdict(newest) || '');
}

function facts(run) {
    return [[time(run.best), 'best kernel'],
        run.plain / run.best > 0 && run.plain < Infinity &&
            [(run.plain / run.best).toFixed(2) + '×', 'as fast as the plain kernel'],
        run.best < Infinity && run.roofline > 0 &&
            [percent(run.roofline / run.best), 'of the speed of the roofline'],
        run.best < Infinity && run.bytes > 0 &&
            [digits(run.bytes / run.best) + ' GB/s', 'effective bandwidth'],
        data.live && [run.all.length, 'trials'],
        data.live && [digits(run.space_points), 'points in the space']].filter(Boolean);
}

const sameAsFirst = run => run.problem === runs[0].problem &&
    run.device.fingerprint === runs[0].device.fingerprint;

// As few columns as fit a telephone; the rest has the runs side by side, and may be scrolled.
function comparison() {
    const first = runs[0], left = run => run.best < Infinity && first.best < Infinity
        ? (run.best / first.best).toFixed(3) + '×' : '–';
    const short = table('The best of each run', ['run', 'best', `against ${first.letter}`, 'of roofline'],
        runs.map(run => [runs.every(sameAsFirst) ? `${run.letter}: ${run.strategy}` : run.label,
            time(run.best), left(run), run.roofline > 0 ? percent(run.roofline / run.best) : '–']));
    short.classList.add('fits');
    const of = [['problem', run => run.problem], ['device', run => run.device.device],
        ['tuned', run => run.when.slice(0, 16)], ['strategy', run => run.strategy],
        ['trials', run => String(run.all.length)], ['right', run => String(run.ok.length)],
        ['seconds', run => digits(run.elapsed_s, 3)], ['plain', run => time(run.plain)],
        ['bandwidth', run => run.best < Infinity && run.bytes > 0
            ? digits(run.bytes / run.best) + ' GB/s' : '–']];
    return make('div', {}, short, make('details', {}, make('summary', {}, 'More about the runs'),
        scroll('The runs side by side', table('The runs side by side',
            ['run', ...runs.map(run => run.letter)], of.map(([name, text]) =>
                [name, ...runs.map(text)])))));
}

// The page of a run that goes on loads itself again, but not under somebody's hands.
function follow() {
    const box = make('input', {type: 'checkbox', id: 'follow', checked: true});
    const said = make('span', {role: 'status'});
    const age = () => Date.now() / 1000 - data.written;
    let busy = 0;
    for (const kind of ['pointerdown', 'pointermove', 'keydown', 'wheel'])
        addEventListener(kind, () => busy = Date.now(), {passive: true});
    setInterval(() => {
        said.textContent = age() > 15
            ? `Nothing was written for ${Math.round(age())} s: the run may have ended.`
            : `The run goes on: ${trials.length} trials after ` +
              `${digits(runs[0].elapsed_s, 3)} s.`;
        if (box.checked && Date.now() - busy > 1500 && !document.hidden)
            location.reload();
    }, 2000);
    return make('p', {class: 'note'}, box,
        make('label', {for: 'follow'}, ' Follow the run '), said);
}

// Search ---------------------------------------------------------------------------------

function bestSoFar(run, X, Y, x) {
    const list = [];
    let best = Infinity;
    for (const t of run.ok) {
        if (t.ns >= best)
            continue;
        if (list.length)
            list.push([X.at(x(t)), list[list.length - 1][1]]);
        list.push([X.at(x(t)), Y.at(scaled(best = t.ns))]);
    }
    if (list.length)
        list.push([X.at(most(run.all.map(x))), list[list.length - 1][1]]);
    return line(list, {class: `line best ${colour(run)}`});
}

function searchMarks(wide, high, svg) {
    const x = t => chosen.x === 'number' ? t.number : t.at, top = 1.5 * scaled(slowest);
    const levels = runs.flatMap(run => [run.plain, run.roofline || Infinity])
        .filter(ns => ns < Infinity).map(scaled), places = [];
    const marks = axes(wide, high,
        {low: Math.min(1, least(trials.map(x))), high: most(trials.map(x)),
            label: chosen.x === 'number' ? 'trial' : 'seconds since the start'},
        {low: 0.9 * least([scaled(fastest), ...levels]), log: true,
            high: 1.1 * most([failures.length ? top : scaled(slowest), ...levels]),
            label: `time, ${axisUnit[0]}`},
        (X, Y) => [
            trials.map(t => {
                const place = {t, x: X.at(x(t)),
                    y: Y.at(t.status === 'ok' ? scaled(t.ns) : top)};
                places.push(place);
                return dot(place.x, place.y, t);
            }),
            runs.map(run => [bestSoFar(run, X, Y, x),
                [[run.plain, 'c6'], [run.roofline || Infinity, 'c2']].map(([ns, hue]) =>
                    ns < Infinity && draw('line', {x1: X.from, x2: X.to, y1: Y.at(scaled(ns)),
                        y2: Y.at(scaled(ns)), class: `line dash ${hue}`}))])]);
    points(svg, places);
    return marks;
}

function search() {
    const part = section('The search', 'search-part');
    for (const run of runs) {
        const sum = k => run.trials.reduce((s, t) => s + t[k], 0).toFixed(1);
        part.append(make('p', {}, one ? '' : `${run.label}. `, 'Strategy ',
            make('code', {}, run.strategy), `, ${digits(run.elapsed_s, 3)} s in all: ` +
            `${sum(4)} s for compiling, ${sum(5)} s for checking and ${sum(6)} s for timing. ` +
            `${run.all.filter(t => t.stored).length} of ${run.all.length} trials came from ` +
            'the store.'));
    }
    if (!right.length)
        return;
    const pick = make('select', {id: 'search-x', change: e => {
        chosen.x = e.target.value;
        paint();
        remember();
    }}, [['number', 'trial'], ['at', 'seconds']].map(([value, text]) =>
        make('option', {value, selected: value === chosen.x}, text)));
    part.append(make('p', {}, make('label', {for: 'search-x'}, 'Order by '), pick),
        legend([...runs.map(run => [colour(run), '', one ? 'right' : run.label]),
            trials.some(t => t.cut) && [colour(runs[0]), 'ring', 'stopped early'],
            ...failures.map((s, k) => ['c' + (3 + k) % 8, 'cross', s]),
            [colour(runs[0]), 'line', 'best so far'],
            runs.some(run => run.plain < Infinity) && ['c6', 'dash', 'plain kernel'],
            runs.some(run => run.roofline) && ['c2', 'dash', 'roofline']].filter(Boolean)));
    const paint = figure(part, 'search', 'Time of every trial',
        'A dot is a trial. The line is the best time so far. A trial that is clearly slower ' +
        'than the best is stopped early. Trials that failed have no time: their crosses are ' +
        'at the top. The roofline is the time that a copy of the bytes, or the arithmetic ' +
        'alone, needs.', 340, searchMarks,
        () => table('The best time so far', ['trial', 'seconds', 'time', 'point'],
            runs.flatMap(run => {
                let best = Infinity;
                return run.ok.filter(t => t.ns < best && (best = t.ns)).map(t =>
                    [t.number, digits(t.at, 3), time(t.ns), t.point]);
            })));
    followers.push(() => paint());
    const bins = 40, low = Math.log(fastest), width = (Math.log(slowest) - low) / bins || 1;
    const count = run => {
        const n = Array(bins).fill(0);
        run.ok.forEach(t => n[Math.min(bins - 1, Math.floor((Math.log(t.ns) - low) / width))]++);
        return n;
    };
    const edge = k => Math.exp(low + k * width);
    if (right.length > 1 && fastest < slowest)
        figure(part, 'distribution', 'How many trials are how fast',
            'The same times without their order: it shows how rare fast kernels are.', 240,
            (wide, high) => axes(wide, high,
                {low: scaled(fastest), high: scaled(slowest), log: true,
                    label: `time, ${axisUnit[0]}`},
                {low: 0, high: most(runs.flatMap(count)), label: 'trials'},
                (X, Y) => runs.map((run, i) => count(run).map((n, k) => {
                    const from = X.at(scaled(edge(k)));
                    const share = (X.at(scaled(edge(k + 1))) - from) / runs.length;
                    return n && draw('rect', {class: `bar ${colour(run)}`, y: Y.at(n),
                        x: from + i * share, width: share - 1 / runs.length,
                        height: Y.from - Y.at(n)});
                }))),
            () => table('Trials by time', ['from', 'to', ...runs.map(run => run.label)],
                range(bins).map(k => [time(edge(k)), time(edge(k + 1)),
                    ...runs.map(run => count(run)[k])])));
}

// Trials: filter, parallel coordinates, table --------------------------------------------

function axisList() {
    const names = params.map(p => ({name: p.name, values: p.values,
        of: t => p.values.indexOf(t.by.get(p.name))}));
    if (!one)
        names.unshift({name: 'run', values: runs.map(run => run.letter),
            of: t => runs.indexOf(t.run)});
    return names;
}

function parallel(part) {
    const list = axisList(), height = 360, top = 40, bottom = height - 16;
    const wide = Math.max(600, 84 * (list.length + 1));
    const Y = scale(scaled(fastest), scaled(slowest), bottom, top + 22, true);
    const yTime = t => t.status === 'ok' ? Y.at(scaled(t.ns)) : top;
    const row = (axis, k) => bottom - (k + 0.5) * (bottom - top) / axis.values.length;
    const shown = trials.length <= LINES_MOST ? trials
        : [...trials].sort((a, b) => a.ns - b.ns).slice(0, LINES_MOST);
    let X, hot;
    const path = t => [...list.map((axis, k) => [X(k), axis.of(t) < 0 ? bottom + 8
        : row(axis, axis.of(t))]), [X(list.length), yTime(t)]];
    // The values that a drag along an axis covers; a click takes the choice back.
    const brush = (axis, x) => {
        let from = null;
        const mark = draw('rect', {class: 'brush', x: x - 9, width: 18, y: 0, height: 0});
        const place = e => e.clientY - hit.getBoundingClientRect().top + top - 8;
        const hit = draw('rect', {class: 'grip', x: x - 16, width: 32, y: top - 8,
            height: bottom - top + 16,
            pointerdown: e => {
                from = place(e);
                hit.setPointerCapture(e.pointerId);
            },
            pointermove: e => from !== null && fill(mark, {y: Math.min(from, place(e)),
                height: Math.abs(place(e) - from)}, []),
            pointerup: e => {
                const to = place(e), low = Math.min(from, to), high = Math.max(from, to);
                from = null;
                if (axis)
                    allow(axis.name, high - low < 4 ? axis.values : axis.values.filter(
                        (_, k) => row(axis, k) >= low - 4 && row(axis, k) <= high + 4),
                    axis.values);
                else
                    between(high - low < 4 ? 0 : Y.back(high) * axisUnit[1],
                        high - low < 4 || low <= top + 20 ? Infinity
                            : Y.back(low) * axisUnit[1]);
            }});
        return [mark, hit];
    };
    const paint = figure(part, 'coordinates', 'Parameters and time',
        'A line is a trial; it crosses each axis at its value. Drag along an axis to keep ' +
        'only the trials in that part; click the axis to keep all of them again. Strong ' +
        'lines are fast. The filters below do the same by keyboard.' +
        (shown.length < trials.length ? ` The ${shown.length} fastest are drawn.` : ''),
        height, (full, high, svg) => {
            X = k => 40 + k * (full - 110) / list.length;
            hot = draw('polyline', {class: 'line hot', visibility: 'hidden'});
            svg.addEventListener('pointermove', e => {
                const box = svg.getBoundingClientRect(), y = e.clientY - box.top;
                const k = Math.max(0, Math.min(list.length - 1,
                    Math.floor((e.clientX - box.left - X(0)) / (X(1) - X(0)))));
                const part = (e.clientX - box.left - X(k)) / (X(1) - X(0));
                let near = null, distance = 8;
                for (const t of shown) {
                    if (!t.on)
                        continue;
                    const line = path(t);
                    const d = Math.abs(line[k][1] + part * (line[k + 1][1] - line[k][1]) - y);
                    if (d < distance || (near && d === distance && t.ns < near.ns))
                        [near, distance] = [t, d];
                }
                light(near, e);
            });
            svg.addEventListener('pointerleave', () => light(null));
            const order = [...shown].sort((a, b) => a.on - b.on || b.ns - a.ns);
            return [order.map(t => line(path(t), {
                class: `thread ${t.status === 'ok' ? colour(t.run) : 'c6'} ` +
                    (t.on ? '' : 'off'),
                'stroke-opacity': t.on ? (t.status === 'ok'
                    ? 0.12 + 0.8 * (fastest / t.ns) ** 2 : 0.15).toFixed(2) : null})),
            list.map((axis, k) => [
                draw('line', {class: 'axis', x1: X(k), x2: X(k), y1: top - 4, y2: bottom}),
                label(X(k), 16, axis.name, {class: 'mid strong'}),
                axis.values.map((value, i) => axis.values.length > 20 && i % 4 ? null
                    : label(X(k) + 5, row(axis, i) + 4, value, {
                        class: 'halo ' + (refuses(axis.name, value) ? 'soft' : '')})),
                brush(axis, X(k))]),
            draw('line', {class: 'axis', x1: X(list.length), x2: X(list.length),
                y1: top - 4, y2: bottom}),
            label(X(list.length), 16, `time, ${axisUnit[0]}`, {class: 'mid strong'}),
            failures.length ? label(X(list.length) + 5, top + 4, 'failed', {class: 'halo'}) : null,
            Y.ticks.map(v => label(X(list.length) + 5, Y.at(v) + 4, digits(v), {class: 'halo'})),
            brush(null, X(list.length)), hot];
        },
        () => make('p', {}, 'The table of trials below has the same rows.'), wide);
    followers.push(() => paint());
    lights.push(t => {
        if (t)
            fill(hot, {points: path(t).map(p => p.join(',')).join(' ')}, []);
        hot.setAttribute('visibility', t ? 'visible' : 'hidden');
    });
}

function between(low, high) {
    Object.assign(chosen, {low, high});
    choose();
}

function filters(part) {
    const words = make('input', {id: 'words', type: 'search', value: chosen.words,
        autocomplete: 'off', spellcheck: 'false', placeholder: 'lx>=32 time<50us',
        input: e => {
            chosen.words = e.target.value;
            chosen.shown = FEW;
            choose();
        }});
    const groups = [['status', [...new Set(trials.map(t => t.status))]],
        ...(one ? [] : [['run', runs.map(run => run.letter)]]),
        ...params.map(p => [p.name, p.values])].filter(([, values]) => values.length > 1);
    const boxes = [];
    const group = ([name, values]) => make('fieldset', {}, make('legend', {}, name),
        values.map(value => {
            const box = make('input', {type: 'checkbox', change: () => allow(name,
                boxes.filter(b => b.name === name && b.box.checked).map(b => b.value), values)});
            boxes.push({name, value, box});
            return make('label', {}, box, ' ' + value);
        }));
    followers.push(() => {
        boxes.forEach(b => b.box.checked = !refuses(b.name, b.value));
        words.value = chosen.words;
    });
    part.append(make('div', {class: 'tools'},
        make('label', {for: 'words'}, 'Show trials with'), words,
        make('button', {type: 'button', click: () => {
            Object.assign(chosen, {words: '', low: 0, high: Infinity, refused: new Map()});
            choose();
        }}, 'Show all')),
    make('p', {class: 'soft'}, 'Words are parts of a point, a status or a message, or ' +
        'comparisons: ', make('code', {}, 'lx>=32'), ', ', make('code', {}, 'time<50us'), ', ',
    make('code', {}, 'status=ok'), '. All of them must hold.'),
    make('details', {class: 'filters'}, make('summary', {}, 'Filter by values'),
        groups.map(group)));
}

function columns() {
    const told = runs[0].metrics.concat(runs[0].objectives.length > 1
        ? runs[0].objectives : []).map((name, k) => [name, k])
        .filter(([, k]) => new Set(right.map(t => t.told[k] ?? null)).size > 1);
    return [!one && ['run', t => t.run.letter], ['trial', t => t.number],
        ['time', t => t.ns, t => time(t.ns)],
        ['slower', t => t.ns, t => t.ns < Infinity ? percent(t.ns / fastest - 1) : '–'],
        failures.length > 0 && ['status', t => t.status],
        ...told.map(([name, k]) => [name, t => t.told[k] ?? Infinity,
            t => digits(t.told[k] ?? Infinity)]),
        ...params.map(p => [p.name, t => isFinite(t.by.get(p.name))
            ? Number(t.by.get(p.name)) : t.by.get(p.name) ?? '', t => t.by.get(p.name) ?? '']),
        failures.length > 0 && ['message', t => t.log]].filter(Boolean);
}

const compare = (a, b) => typeof a === 'number' && typeof b === 'number'
    ? a - b || 0 : String(a).localeCompare(String(b));

function trialTable(part) {
    const list = columns(), body = make('tbody'), count = make('span', {role: 'status'});
    const order = () => {
        const of = (list.find(c => c[0] === chosen.sort) || list[1])[1];
        return trials.filter(t => t.on).sort((a, b) =>
            (chosen.up ? 1 : -1) * compare(of(a), of(b)) || a.number - b.number);
    };
    const heads = list.map(([name, of]) => make('th', {scope: 'col',
        class: trials.some(t => typeof of(t) === 'number') ? 'r' : null}, make('button', {
        type: 'button', click: () => {
            chosen.up = chosen.sort === name ? !chosen.up : true;
            chosen.sort = name;
            show();
            remember();
        }}, name)));
    const more = make('button', {type: 'button', click: () => {
        chosen.shown += MORE;
        show();
    }});
    const rowOf = t => {
        const row = make('tr', {class: t === chosen.hot ? 'hot' : null,
            pointerenter: () => light(t), pointerleave: () => light(null),
            focusin: () => light(t), focusout: () => light(null)},
        list.map(([name, of, text]) => make('td',
            {class: typeof of(t) === 'number' ? 'r' : null}, (text || of)(t))),
        make('td', {}, copyButton('Copy', () => t.point, `Copy point of trial ${t.number}`)));
        row.trial = t;
        return row;
    };
    function show() {
        const rows = order(), n = Math.min(rows.length, chosen.shown);
        body.replaceChildren(...rows.slice(0, n).map(rowOf));
        heads.forEach((head, k) => head.setAttribute('aria-sort', list[k][0] !== chosen.sort
            ? 'none' : chosen.up ? 'ascending' : 'descending'));
        count.textContent = `${rows.length} of ${trials.length} trials; ` +
            `the first ${n} are in the table.`;
        more.textContent = `Show ${Math.min(MORE, rows.length - n)} more`;
        more.hidden = n === rows.length;
    }
    const csv = () => [list.map(c => c[0]).join(','), ...order().map(t => list.map(c =>
        JSON.stringify(c[1](t))).join(','))].join('\n') + '\n';
    part.append(make('div', {class: 'tools'}, count,
        copyButton('Copy as CSV', csv),
        make('button', {type: 'button', click: () => save('trials.csv', 'text/csv', csv())},
            'Save as CSV')),
    scroll('Trials', make('table', {class: 'trials'}, make('caption', {class: 'hide'},
        'Trials; the buttons in the head sort them'), make('thead', {}, make('tr', {}, heads,
        make('th', {scope: 'col'}, 'point'))), body)), make('p', {}, more));
    followers.push(show);
    lights.push(t => {
        for (const row of body.children)
            row.classList.toggle('hot', row.trial === t);
    });
}

function allTrials() {
    const part = section('All trials', 'trials');
    if (right.length && params.length)
        parallel(part);
    filters(part);
    trialTable(part);
}

// Parameters -----------------------------------------------------------------------------

// A bar for each name; the value is written behind it.
function bars(part, id, title, about, list, axis) {
    figure(part, id, title, about, 40 + 24 * list.length, wide => {
        const left = Math.min(170, wide / 2.6), high = most(list.map(item => item[1])) || 1;
        return [list.map(([name, value], k) => [
            label(left - 6, 20 + 24 * k, name, {class: 'end'}),
            draw('rect', {class: 'bar c0', x: left, y: 8 + 24 * k, height: 16,
                width: Math.max(0, value) / high * (wide - left - 60)}),
            label(left + 6 + Math.max(0, value) / high * (wide - left - 60), 20 + 24 * k,
                value.toFixed(3))]),
        label(wide / 2, 32 + 24 * list.length, axis, {class: 'mid soft'})];
    }, () => table(title, ['name', axis], list.map(([name, value]) => [name, digits(value)])));
}

function spread(run, p, name) {
    const by = new Map();
    for (const t of run.ok)
        by.set(t.values[p], [...(by.get(t.values[p]) || []), t.ns]);
    return [...by].map(([value, list]) => {
        list.sort((a, b) => a - b);
        const part = k => list[Math.round(k * (list.length - 1))];
        return {name, value, n: list.length, least: list[0], low: part(0.25),
            median: median(list), high: part(0.75)};
    }).sort((a, b) => run.parameters[p].values.indexOf(a.value) -
        run.parameters[p].values.indexOf(b.value));
}

// The values that were tried most often.
const frequent = list => {
    const least = list.map(s => s.n).sort((a, b) => b - a)[VALUES_MOST - 1] || 0;
    return list.filter(s => s.n >= least).slice(0, VALUES_MOST);
};

function spreads(part, run, order, id) {
    const panels = order.map(p => frequent(spread(run, p, run.names[p])))
        .filter(list => list.length > 1);
    if (!panels.length)
        return;
    const low = 0.95 * scaled(least(panels.flat().map(s => s.least)));
    const high = 1.05 * scaled(most(panels.flat().map(s => s.high)));
    const across = Math.max(1, Math.floor((main.clientWidth - 34) / 280)), tall = 210;
    figure(part, id, 'Times by value',
        'For each value that was tried: the middle half of its times, their median as a ' +
        'line, and the best as a dot. A search that learns tries good values more often, so ' +
        'medians flatter them; the dots do not.', tall * Math.ceil(panels.length / across),
        wide => panels.map((list, i) => draw('g', {transform: 'translate(' +
            `${wide / across * (i % across)} ${tall * Math.floor(i / across)})`},
        axes(wide / across - 6, tall, {names: list.map(s => s.value), label: list[0].name},
            {low, high, log: true, label: axisUnit[0]}, (X, Y) => list.map((s, k) => {
                const half = Math.min(14, (X.at(1) - X.at(0)) * 0.35);
                const y = ns => Y.at(scaled(ns));
                return [draw('rect', {class: 'box c0', x: X.at(k) - half, width: 2 * half,
                    y: y(s.high), height: y(s.low) - y(s.high) + 1}),
                draw('line', {class: 'line c0', x1: X.at(k) - half, x2: X.at(k) + half,
                    y1: y(s.median), y2: y(s.median)}),
                draw('circle', {class: 'dot c1', cx: X.at(k), cy: y(s.least), r: 3})];
            })))),
        () => table('Times by value', ['parameter', 'value', 'trials', 'best', 'lower quarter',
            'median', 'upper quarter'], panels.flat().map(s => [s.name, s.value, s.n,
            time(s.least), time(s.low), time(s.median), time(s.high)])));
}

function pair(part, run, [a, b], id) {
    const rows = run.parameters[a], cols = run.parameters[b];
    if (!cols || rows.values.length < 2 || cols.values.length < 2 ||
        rows.values.length > VALUES_MOST || cols.values.length > VALUES_MOST)
        return;
    const best = (r, c) => least(run.ok.filter(t => t.values[a] === r && t.values[b] === c)
        .map(t => t.ns));
    const tall = 60 + 28 * rows.values.length;
    figure(part, id, `Best time of pairs: ${rows.name} and ${cols.name}`,
        `The two parameters that matter most, together: the best time of each pair of ` +
        `values, in ${axisUnit[0]}. Strong colour is fast; an empty cell was not tried, or ` +
        'none of its trials was right.', tall, wide => {
            const left = 80, w = (wide - left) / cols.values.length;
            return [rows.values.map((r, i) => [label(left - 6, 22 + 28 * i, r, {class: 'end'}),
                cols.values.map((c, k) => {
                    const ns = best(r, c);
                    return ns < Infinity && [draw('rect', {class: 'heat', x: left + w * k,
                        y: 4 + 28 * i, width: w - 1, height: 27, 'fill-opacity':
                            (0.04 + 0.36 * (fastest / ns) ** 1.5).toFixed(3)}),
                    label(left + w * (k + 0.5), 22 + 28 * i, digits(scaled(ns), w > 48 ? 4 : 2),
                        {class: 'mid'})];
                })]),
            cols.values.map((c, k) => label(left + w * (k + 0.5), tall - 40, c, {class: 'mid'})),
            label(left, tall - 18, `across ${cols.name}, down ${rows.name}`, {class: 'soft'})];
        },
        () => table('Best time of pairs', [rows.name, ...cols.values], rows.values.map(r =>
            [r, ...cols.values.map(c => time(best(r, c)))])));
}

function parameters(run) {
    const a = run.analysis, end = run.letter;
    if (!a || !run.ok.length)
        return;
    const part = section('What the parameters do' + (one ? '' : `, ${run.label}`),
        'parameters-part' + end);
    if (a.explained === null)
        part.append(make('p', {class: 'soft'},
            'Too few trials were right to tell which parameters matter.'));
    else
        bars(part, 'importance' + end, 'Importance of the parameters',
            'A forest is fitted to the trials and asked for trials that it has not seen, then ' +
            'asked again with the values of one parameter shuffled. What the prediction loses ' +
            'is the share of that parameter. Parameters that say the same share their ' +
            'importance.', a.order.filter(p => run.parameters[p].values.length > 1)
                .map(p => [run.names[p], Math.max(0, a.importance[p])]),
            `share of the variance (${percent(Math.max(0, a.explained))} explained)`);
    spreads(part, run, a.order, 'parameters' + end);
    if (a.explained !== null)
        pair(part, run, a.order, 'pair' + end);
}

// Models ---------------------------------------------------------------------------------

function predicted(part, run, p, id) {
    const list = run.analysis.kernels.map((i, k) => {
        const t = run.all[i];
        return {t, said: p.is_time ? scaled(p.value[k]) : p.value[k],
            found: p.is_time ? scaled(t.ns) : run.best / t.ns};
    });
    const all = list.flatMap(k => [k.said, k.found]).concat(p.is_time ? [] : [0, 1]);
    const what = p.is_time ? `time, ${axisUnit[0]}` : 'speed relative to the best';
    const name = run.analysis.unknown ? `${p.model} of the other trials` : p.model;
    const axis = kind => ({low: least(all), high: most(all), log: p.is_time,
        label: `${kind} ${what}`});
    figure(part, id, `Predicted by ${name}`,
        'What a model says of the kernels that ran, without having run them, and what was ' +
        `measured. On the dashed line it is right. Rank correlation ${digits(p.spearman, 2)}.`,
        340, (wide, high, svg) => {
            const places = [];
            const marks = axes(Math.min(wide, 560), high, axis('measured'), axis('predicted'),
                (X, Y) => [line([[X.at(X.low), Y.at(Y.low)], [X.at(X.high), Y.at(Y.high)]],
                    {class: 'line dash c6'}), list.map(({t, said, found}) => {
                    places.push({t, x: X.at(found), y: Y.at(said)});
                    return dot(X.at(found), Y.at(said), t);
                })]);
            points(svg, places);
            return marks;
        },
        () => table('Predictions', ['trial', `measured ${what}`, `predicted ${what}`],
            list.map(({t, said, found}) => [t.number, digits(found), digits(said)])));
}

// Where the bytes of each kernel are not known, all stand at those of the problem. Where
// the arithmetic is not, bandwidth stands for speed.
function roofline(part, run, id) {
    const a = run.analysis, work = run.flops > 0 && run.compute_ns > 0 ? run.flops : 0;
    if (!(run.copy_ns > 0 && run.bytes > 0 && run.ok.length))
        return part.append(make('p', {class: 'soft'},
            'No roofline: the bandwidth of the device was not measured.'));
    const slope = run.bytes / run.copy_ns, peak = work ? work / run.compute_ns : slope;
    const once = work ? work / run.bytes : 1, amount = work || run.bytes;
    const list = a.intensity && work ? a.kernels.map((i, k) => [run.all[i], a.intensity[k]])
        .filter(k => k[1] > 0) : run.ok.map(t => [t, once]);
    const knee = work ? peak / slope : once;
    const low = 0.6 * least([once, knee / 2, ...list.map(k => k[1])]);
    const high = 1.6 * most([once, 2 * knee, ...list.map(k => k[1])]);
    const speeds = list.map(k => amount / k[0].ns), y = work ? 'Gflop/s' : 'GB/s';
    figure(part, id, 'Roofline',
        (work ? 'No kernel whose bytes all come from memory can be above the roof. '
            : 'The arithmetic of this problem is not known, so the figure shows bandwidth ' +
              'against that of a copy. ') +
        (a.intensity && work ? 'Bytes are those of the cache lines that each work-group ' +
            'touches: where groups share lines through a cache, a dot may be above the slope. ' +
            'Left of the dashed line, lines are loaded more than once.'
            : 'The bytes of each kernel are not known: all are drawn at the bytes that the ' +
              'problem needs at least.'), 340,
        (wide, tall, svg) => {
            const places = [];
            const marks = axes(wide, tall,
                {low, high, log: true, label: 'floating-point operations per byte'},
                {low: 0.7 * least(speeds), high: 1.4 * most([peak, ...speeds]), log: true,
                    label: y},
                (X, Y) => {
                    const clip = (x, v) => [X.at(x), Math.min(Y.from, Y.at(v))];
                    return [line(work ? [clip(low, slope * low), clip(knee, peak),
                        clip(high, peak)] : [clip(low, peak), clip(high, peak)],
                    {class: 'line c6'}),
                    line([[X.at(once), Y.from], [X.at(once), Y.at(peak)]],
                        {class: 'line dash c2'}),
                    list.map(([t, x]) => {
                        places.push({t, x: X.at(x), y: Y.at(amount / t.ns)});
                        return dot(X.at(x), Y.at(amount / t.ns), t);
                    })];
                });
            points(svg, places);
            return marks;
        },
        () => table('Roofline', ['trial', 'operations per byte', y, 'of the roof'],
            list.map(([t, x]) => [t.number, work ? digits(x) : '–', digits(amount / t.ns),
                percent(amount / t.ns / (work ? Math.min(peak, slope * x) : peak))])));
}

function models(run) {
    const a = run.analysis, end = run.letter;
    if (!a || !run.ok.length)
        return;
    const part = section((a.unknown ? 'What trials tell of others'
        : 'What is known without running') + (one ? '' : `, ${run.label}`), 'models' + end);
    if (a.unknown)
        part.append(make('p', {class: 'soft'}, `No features: ${a.unknown}.`));
    if (run.model)
        part.append(make('p', {}, 'The search followed the ranking of a model: ',
            make('code', {}, run.model), '.'));
    a.predicted.forEach((p, k) => predicted(part, run, p, 'predicted' + end + (k || '')));
    if (a.features.length)
        bars(part, 'features' + end, 'What features tell of the time',
            'Static features of the kernels, found without running them. Those that tell most ' +
            'of the time come first.', a.features,
            'mutual information with the time, I / (H + H): 0 nothing, 0.5 all');
    roofline(part, run, 'roofline' + end);
}

// Several objectives ---------------------------------------------------------------------

function front(run) {
    const n = run.objectives.length, skip = run.metrics.length;
    if (n < 2)
        return;
    const told = run.ok.filter(t => t.told.length === skip + n &&
        t.told.slice(skip).every(x => x !== null));
    const best = told.filter(t => t.front);
    if (!best.length)
        return;
    const part = section('The front' + (one ? '' : `, ${run.label}`), 'front-part' + run.letter);
    const axis = k => ({low: least(told.map(t => t.told[skip + k])),
        high: most(told.map(t => t.told[skip + k])), label: run.objectives[k]});
    figure(part, 'front' + run.letter, 'Objectives',
        'The first two objectives of all trials that were right. No trial beats one of the ' +
        'front (large dots): what is better in one objective is worse in another.', 340,
        (wide, high, svg) => {
            const places = told.map(t => ({t}));
            const marks = axes(wide, high, axis(0), axis(1), (X, Y) => places.map(p => {
                p.x = X.at(p.t.told[skip]);
                p.y = Y.at(p.t.told[skip + 1]);
                return dot(p.x, p.y, p.t, best.includes(p.t) ? {r: 5} : {});
            }));
            points(svg, places);
            return marks;
        },
        () => table('The front', ['trial', ...run.objectives, 'point'], best.map(t =>
            [t.number, ...t.told.slice(skip).map(x => digits(x)), t.point])));
}

// Kernels --------------------------------------------------------------------------------

const token = new RegExp('(?<c>//[^\\n]*|/\\*[^]*?\\*/)|(?<p>^[ \\t]*#[^\\n]*)|' +
    '(?<s>"(?:\\\\.|[^"\\\\\\n])*"|\'(?:\\\\.|[^\'\\\\\\n])*\')|' +
    '(?<n>\\b\\d[\\w.]*(?:(?<=[eEpP])[+-]\\w+)?)|(?<w>[A-Za-z_]\\w*)', 'gm');
const separate = rows => new Set(rows.flatMap(row => row.split(' ')));
const keywords = separate(data.words.keywords), builtins = separate(data.words.builtins);

function highlight(text) {
    const out = [];
    let end = 0;
    for (const found of text.matchAll(token)) {
        const word = found.groups.w;
        const kind = !word ? Object.keys(found.groups).find(k => found.groups[k])
            : builtins.has(word) ? 'b'
                : keywords.has(word) || keywords.has(word.replace(/\d+$/, '')) ? 'k' : null;
        if (!kind)
            continue;
        out.push(text.slice(end, found.index), make('span', {class: kind}, found[0]));
        end = found.index + found[0].length;
    }
    return [...out, text.slice(end)];
}

// Lines of two texts, [sign, text], by their longest common subsequence.
function difference(a, b) {
    let head = 0, tail = 0;
    while (head < Math.min(a.length, b.length) && a[head] === b[head])
        head++;
    while (tail < Math.min(a.length, b.length) - head &&
           a[a.length - 1 - tail] === b[b.length - 1 - tail])
        tail++;
    const n = a.length - head - tail, m = b.length - head - tail, out = [];
    if (n > LINES_DIFFED || m > LINES_DIFFED)
        return null;
    const best = range(n + 1).map(() => new Uint16Array(m + 1));
    for (let i = n - 1; i >= 0; i--)
        for (let k = m - 1; k >= 0; k--)
            best[i][k] = a[head + i] === b[head + k] ? best[i + 1][k + 1] + 1
                : Math.max(best[i + 1][k], best[i][k + 1]);
    a.slice(0, head).forEach(text => out.push([' ', text]));
    for (let i = 0, k = 0; i < n || k < m;)
        if (i < n && k < m && a[head + i] === b[head + k])
            out.push([' ', a[head + i++]]) && k++;
        else if (i < n && (k === m || best[i + 1][k] >= best[i][k + 1]))
            out.push(['-', a[head + i++]]);
        else
            out.push(['+', b[head + k++]]);
    a.slice(a.length - tail).forEach(text => tail && out.push([' ', text]));
    return out;
}

function differenceText(from, to) {
    const lines = difference(from.text.split('\n'), to.text.split('\n'));
    if (!lines)
        return ['The texts are too long to be compared here.'];
    const near = new Set();
    lines.forEach(([sign], i) => sign !== ' ' &&
        range(7).forEach(k => near.add(i + k - 3)));
    return [`--- ${from.name}\n+++ ${to.name}\n`,
        near.size ? lines.map(([sign, text], i) => !near.has(i)
            ? near.has(i - 1) || (i === 0 && lines.length) ? '⋯\n' : ''
            : sign === ' ' ? `  ${text}\n`
                : make(sign === '+' ? 'ins' : 'del', {}, `${sign} ${text}\n`))
            : 'The texts are equal.'];
}

function kernels() {
    const part = section('Kernels', 'kernels');
    const texts = runs.flatMap(run => [[run.kernel, 'best kernel'],
        [run.plain_kernel, 'plain kernel']].filter(k => k[0]).map(([text, name]) =>
        ({text, name: one ? name : `${name} of ${run.letter}`, run})));
    for (const run of runs)
        part.append(make('p', {}, one ? '' : `${run.label}. `, run.kernel
            ? ['The best point is ', make('code', {}, run.best_point), '. Its outputs agree ' +
                `with the reference (${run.reference}); the largest relative error of all ` +
                `right trials is ${digits(known(run.max_error), 2)}.`]
            : data.live ? 'The kernel follows when the run has ended.'
                : 'No candidate was built, right and in time.'));
    if (!texts.length)
        return;
    const second = one ? texts[1] : texts.find(k => k.run !== runs[0]);
    const pick = (id, first, all, selected) => make('select', {id, change: show}, first,
        all.map((k, i) => make('option', {value: i, selected: k === selected}, k.name)));
    const a = pick('kernel', null, texts, texts[0]);
    const b = pick('beside', make('option', {value: ''}, 'nothing'), texts, one ? null : second);
    const code = make('code', {});
    function show() {
        const from = texts[b.value], to = texts[a.value];
        code.replaceChildren(...(from ? differenceText(from, to) : highlight(to.text)).flat());
    }
    part.append(make('div', {class: 'tools'}, make('label', {for: 'kernel'}, 'Show the'), a,
        make('label', {for: 'beside'}, 'and what differs from the'), b,
        copyButton('Copy', () => code.textContent, 'Copy the text shown')),
    make('pre', {tabindex: 0, role: 'region', 'aria-label': 'Text of the kernel'}, code));
    show();
    if (one && second)
        part.append(make('h3', {}, 'Beside the plain kernel'),
            make('pre', {tabindex: 0, role: 'region', 'aria-label':
                'What differs from the plain kernel', id: 'difference'},
            make('code', {}, ...differenceText(second, texts[0]).flat())));
}

function again(run) {
    const part = section('How to do it again' + (one ? '' : `, ${run.label}`),
        'again' + run.letter);
    const objectives = run.objectives.join(', ');
    const list = [['program', run.file],
        ['sizes', Object.entries(run.sizes).map(s => s.join('=')).join(', ')],
        ['seed', String(run.seed)], ['only points where', run.where], ['arithmetic', run.math],
        ['device', `${run.device.device} (${run.device.id}), ` +
            `fingerprint ${run.device.fingerprint}`],
        ['driver', run.device.driver], ['limits of the device', run.device.limits],
        ['objectives', objectives], ['sandbox', run.sandbox], ['language', run.target],
        ['code generator', run.version], ['when', run.when]];
    part.append(make('pre', {tabindex: 0, role: 'region', 'aria-label': 'The command' +
        run.letter}, make('code', {}, run.command)),
    copyButton('Copy the command', () => run.command),
    make('dl', {class: 'facts'}, list.filter(fact => fact[1]).map(([term, text]) =>
        [make('dt', {}, term), make('dd', {}, text)])),
    make('p', {class: 'soft'}, 'The same seed gives the same inputs and, with a strategy that ' +
        'does not follow times, the same points. If the trials are in the store, the same ' +
        'command continues where it stopped; ', make('code', {}, '--fresh'),
    ' forgets them first.'));
}

recall();
main.replaceChildren();
summary();
search();
allTrials();
runs.forEach(front);
runs.forEach(parameters);
runs.forEach(models);
kernels();
runs.forEach(again);
choose();
figures.forEach(paint => paint());
let wide = main.clientWidth;
addEventListener('resize', () => {
    if (main.clientWidth !== wide)
        figures.forEach(paint => paint());
    wide = main.clientWidth;
});
document.body.dataset.drawn = 'yes';
