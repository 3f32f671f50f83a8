// What a page is made of: numbers as text, elements, tables, and the charts of one problem.
"use strict";

const Text = {
  significant(value, digits = 3) {
    if (!Number.isFinite(value)) return "–";
    return Math.abs(value) >= 10 ** digits ? value.toFixed(0) : Number(value.toPrecision(digits)).toString();
  },
  scaled(value, units, digits) {
    let i = 0;
    while (i + 1 < units.length && value >= units[i + 1][0]) ++i;
    return Text.significant(value / units[i][0], digits) + " " + units[i][1];
  },
  seconds: (s, digits = 4) => Text.scaled(s, [[1e-9, "ns"], [1e-6, "µs"], [1e-3, "ms"], [1, "s"]], digits),
  flops: f => Text.scaled(f, [[1e6, "MFLOP/s"], [1e9, "GFLOP/s"], [1e12, "TFLOP/s"], [1e15, "PFLOP/s"]], 4),
  /** In the unit that the study's operator is bound by. */
  rate: (study, seconds) => (study.rate.unit === "GB/s" ? Text.bandwidth : Text.flops)(study.rate.per_call / seconds),
  bytes: b => Text.scaled(b, [[1, "B"], [1024, "KiB"], [1024 ** 2, "MiB"], [1024 ** 3, "GiB"]], 3),
  bandwidth: b => Text.scaled(b, [[1e6, "MB/s"], [1e9, "GB/s"], [1e12, "TB/s"]], 3),
  percent: (share, digits = 1) => (100 * share).toFixed(digits) + " %",
  times: value => value.toFixed(3) + "×",
  interval: ([, low, high]) => `[${low.toFixed(3)}, ${high.toFixed(3)}]`,
  config: record => record.template === "vendor" ? record.origin
    : record.template + " " + Object.entries(record.config).map(([name, value]) => name + "=" + value).join(" "),
  plural: (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`,
  types: ({ a, b, x, d }) => x ? (x === d ? x : `${x}→${d}`) : a === b && b === d ? a : `${a === b ? a : a + "·" + b}→${d}`,
  title(study) {
    const p = study.problem;
    if (p.kind) return `${study.label ? study.label + ": " : ""}${p.m}×${p.n} ${Text.types(p)} ${p.kind}${p.options === "none" ? "" : " " + p.options}`;
    const sizes = `${p.m}×${p.n}×${p.k}${p.batch > 1 ? " ×" + p.batch : ""}`;
    return `${study.label ? study.label + ": " : ""}${sizes} ${Text.types(p)} ${p.layout}${p.epilogue === "none" ? "" : " " + p.epilogue}`;
  },
  /** Words of about `width` characters a line. */
  wrap(text, width = 56) {
    const lines = [""];
    for (const word of text.split(" "))
      if ((lines.at(-1) + " " + word).length > width && lines.at(-1)) lines.push(word);
      else lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
    return lines;
  },
};

function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value);
  element.append(...children.flat().filter(child => child !== undefined && child !== null && child !== false));
  return element;
}

function badge(word) {
  const kind = { improved: "good", win: "good", "power-limited win": "good", loss: "bad", "power-limited loss": "bad", "no winner": "bad" }[word];
  return el("span", { class: "badge " + (kind || "") }, word);
}

/** Columns are {title, value(row), show(row), number, class, help}. Sorts on a click; `rows` beyond `limit` wait for one. */
function table(columns, rows, { limit = 200, name, sorted, key } = {}) {
  let order = sorted || null, shown = limit, filtered = rows;
  const body = el("tbody"), more = el("button", { type: "button", onclick: () => { shown = Infinity; fill(); } });
  const heads = columns.map((column, i) => el("th", { class: column.number ? "number" : false, scope: "col", title: column.help },
    el("button", { type: "button", onclick: () => {
      order = { column: i, down: order && order.column === i ? !order.down : !!column.number && !column.up };
      fill();
    } }, column.title)));
  function fill() {
    const list = [...filtered];
    if (order) {
      const { value } = columns[order.column], sign = order.down ? -1 : 1, none = v => v === undefined || v === null;
      list.sort((x, y) => {
        const [a, b] = [value(x), value(y)];
        if (none(a) || none(b)) return none(a) - none(b);
        return sign * (a < b ? -1 : a > b ? 1 : 0);
      });
    }
    heads.forEach((head, i) => {
      if (order && order.column === i) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren(...list.slice(0, shown).map(row => el("tr", { "data-row": key && key(row) }, columns.map(column => {
      const value = column.value(row);
      return el("td", { class: [column.number && "number", column.class].filter(Boolean).join(" ") || false,
        "data-value": column.number && value !== undefined && value !== null ? value : false },
        column.show ? column.show(row) : value === undefined || value === null ? "–" : String(value));
    }))));
    more.textContent = `Show all ${list.length}`;
    more.hidden = list.length <= shown;
  }
  fill();
  const whole = el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    el("table", { id: name && name.replaceAll(" ", "-") }, el("thead", {}, el("tr", {}, heads)), body)), more);
  return { element: whole, filter(keep) { filtered = rows.filter(keep); fill(); return filtered.length; } };
}

function card(title, help, ...children) {
  return el("div", { class: "card" }, el("h2", {}, title), help && el("p", { class: "small soft" }, help), ...children);
}
const plot = () => el("div", { class: "plot" });

function describe(study, record, extra = []) {
  const lines = [`${record.stage}, ${record.candidate}${record.candidate === record.origin ? "" : ", " + record.origin}: ${record.status}${record.cached ? ", from the cache" : ""}`];
  if (record.seconds) {
    lines.push(`${Text.times(1 / record.ratio)} ${anchorOf(study)} ${Text.interval([0, 1 / record.high, 1 / record.low])}`);
    lines.push(`${Text.seconds(record.seconds)}, ${Text.rate(study, record.seconds)}`);
  }
  return [...lines, ...extra, ...Text.wrap(Text.config(record)), ...(record.detail ? Text.wrap(record.detail) : [])];
}

/** Where the default failed, ratios relate to another arm in each round: then only times can be compared. */
const anchorOf = study => study.anchor === "default" ? "default" : "anchor";
const Speed = study => study.anchor === "default"
  ? { of: r => 1 / r.ratio, low: r => 1 / r.high, high: r => 1 / r.low, title: "times as fast as the default", short: "× default", text: (v, digits) => Text.significant(v, digits) + "×" }
  : { of: r => 1 / r.seconds, low: r => 1 / r.quartile3, high: r => 1 / r.quartile1,
      title: "rate", short: "rate", text: calls => Text.rate(study, 1 / calls) };
const winnerOf = study => study.finals && study.finals.winner;
const isWinner = (study, record) => {
  const winner = winnerOf(study);
  return !!winner && ["final", "holdout"].includes(record.stage) && record.template !== "vendor" && Text.config(winner) === Text.config(record);
};

/** Median; of Spearman's kind of correlation, the ranks (ties share theirs). */
function median(values) {
  const sorted = [...values].sort((x, y) => x - y), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
function ranks(values) {
  const order = values.map((value, i) => [value, i]).sort((x, y) => x[0] - y[0]), result = [];
  for (let i = 0; i < order.length;) {
    let j = i;
    while (j < order.length && order[j][0] === order[i][0]) ++j;
    for (let k = i; k < j; ++k) result[order[k][1]] = (i + j - 1) / 2;
    i = j;
  }
  return result;
}
function correlation(xs, ys) {
  const mean = v => v.reduce((s, x) => s + x, 0) / v.length, mx = mean(xs), my = mean(ys);
  let xy = 0, xx = 0, yy = 0;
  xs.forEach((x, i) => { xy += (x - mx) * (ys[i] - my), xx += (x - mx) ** 2, yy += (ys[i] - my) ** 2; });
  return xx && yy ? xy / Math.sqrt(xx * yy) : NaN;
}

const Plots = {
  /** Winner, default, vendor and the other finalists: times as fast as the default. */
  finals(host, study) {
    const again = record => record.stage === "holdout", left = record => record.status === "dropped";
    const rows = study.finals.records.filter(r => r.seconds).map(record => ({
      record, winner: isWinner(study, record),
      name: (record.candidate === record.origin ? record.origin : `${record.candidate}, ${record.origin}`) +
        (again(record) ? ", hold-out" : ""),
    })).sort((x, y) => again(y.record) - again(x.record) || left(x.record) - left(y.record) || x.record.ratio - y.record.ratio);
    const kinds = [["winner", r => r.winner], ["vendor library", r => r.record.template === "vendor" && !r.winner],
      ["default", r => r.record.origin === "default" && !r.winner],
      ["slower in the first rounds, by way of the others", r => left(r.record)], ["other finalist", () => true]];
    const datasets = kinds.map(([label], i) => ({ label, ...Charts.look(i), pointRadius: i ? 5 : 6, interval: "x", data: [], records: [] }));
    rows.forEach((row, y) => {
      const set = datasets[kinds.findIndex(([, is]) => is(row))], { ratio, low, high } = row.record;
      set.data.push({ x: 1 / ratio, y, low: 1 / high, high: 1 / low }), set.records.push(row.record);
    });
    for (const set of datasets) set.describe = i => describe(study, set.records[i]);
    const threshold = study.finals.threshold, ends = rows.flatMap(({ record }) => [1 / record.high, 1 / record.low]);
    const min = Math.min(...ends, 1 - threshold), max = Math.max(...ends, 1 + threshold), room = (max - min) * .08;
    Charts.draw(host, {
      label: "Finals: speed of each finalist relative to the default config", datasets: datasets.filter(set => set.data.length),
      height: 90 + 30 * rows.length,
      x: Charts.axis(`times as fast as the ${anchorOf(study)} (95 % interval)`, { min: Math.max(0, min - room), max: max + room, ticks: { includeBounds: false, callback: v => Text.significant(v) + "×" } }),
      y: Charts.axis("", { min: -.6, max: rows.length - .4, reverse: true, title: { display: false }, grid: { display: false },
        afterBuildTicks: scale => { scale.ticks = rows.map((_, value) => ({ value })); },
        ticks: { autoSkip: false, color: Charts.colour("ink"), callback: v => rows[v] ? rows[v].name : "" } }),
      marks: [{ axis: "x", from: 1 - threshold, to: 1 + threshold }, { axis: "x", at: 1, solid: true },
        ...(rows.some(row => again(row.record)) ? [{ axis: "y", at: rows.filter(row => again(row.record)).length - .5 }] : [])],
    });
  },

  /** Of a function with a range: rates by size, and where one kernel follows another. */
  curve(host, study) {
    const { points, borders, size, vendor } = study.curve, rate = (point, seconds) => point.flops / seconds;
    const lines = [["DeepGen", "seconds"], ["default config", "default"], [vendor, "vendor"]].map(([label, field], i) => {
      const own = points.filter(point => point[field]).sort((x, y) => x.at - y.at);
      return { label, ...Charts.look(i, i > 0), showLine: true, borderWidth: i ? 1.2 : 2, borderDash: i ? [4, 4] : [],
        data: own.map(point => ({ x: point.at, y: rate(point, point[field]) })),
        describe: k => [`${label}, ${size}=${own[k].text}: ${Text.flops(rate(own[k], own[k][field]))}, ${Text.seconds(own[k][field])}`,
          ...(field === "seconds" ? [["default", "the default"], ["vendor", vendor]].filter(([other]) => own[k][other]).map(([other, name]) => `${Text.times(own[k][other] / own[k].seconds)} ${name}`) : []),
          ...(own[k].weight === 1 ? [] : [`weight ${Text.significant(own[k].weight)}`])] };
    }).filter(set => set.data.length);
    Charts.draw(host, {
      label: `Rate by ${size}`, datasets: lines, height: 340,
      x: Charts.logAxis(`${size} of a call`, points.map(point => point.at), v => Text.significant(v, 6)),
      y: Charts.logAxis("rate", lines.flatMap(set => set.data.map(({ y }) => y)), v => Text.flops(v)),
      marks: borders.map(at => ({ axis: "x", at, text: String(at) })),
    });
  },

  /** Every candidate in the order of the search, with the best so far. */
  trials(host, study) {
    const origins = [...new Set(study.trials.map(t => t.origin))], starts = [], best = [];
    const speed = Speed(study);
    let fastest = 0;
    study.trials.forEach((trial, i) => {
      if (!i || study.trials[i - 1].stage !== trial.stage) starts.push({ axis: "x", at: i + .5, text: trial.stage });
      if (trial.seconds && trial.status === "ok") fastest = Math.max(fastest, speed.of(trial));
      if (fastest) best.push({ x: i + 1, y: fastest });
    });
    const datasets = origins.map((origin, i) => {
      const own = study.trials.map((trial, n) => ({ trial, n: n + 1 })).filter(({ trial }) => trial.origin === origin && trial.seconds);
      return { label: origin, ...Charts.look(i), interval: "y", describe: k => [`candidate ${own[k].n}`, ...describe(study, own[k].trial)],
        data: own.map(({ trial, n }) => ({ x: n, y: speed.of(trial), low: speed.low(trial), high: speed.high(trial) })) };
    });
    const failed = study.trials.map((trial, n) => ({ trial, n: n + 1 })).filter(({ trial }) => !trial.seconds);
    if (failed.length)
      datasets.push({ label: "no time (failed or dropped)", ...Charts.look(5), pointStyle: "crossRot", data: failed.map(({ n }) => ({ x: n, y: 0 })),
        clip: 8, describe: k => [`candidate ${failed[k].n}`, ...describe(study, failed[k].trial)] });
    datasets.push({ label: "best so far", data: best, type: "line", stepped: true, pointRadius: 0, pointHitRadius: 0, borderWidth: 2,
      pointStyle: "line", borderColor: Charts.colour("ink"), backgroundColor: Charts.colour("ink") });
    Charts.draw(host, {
      label: `Search: speed of ${Text.plural(study.trials.length, "candidate")} in the order tried`, datasets: datasets.filter(set => set.data.length), height: 340,
      x: Charts.axis("candidate, in the order of the search", { min: 0, max: study.trials.length + 1 }),
      y: Charts.axis(speed.title, { min: 0, suggestedMax: 1.12 * most(study.trials.filter(t => t.seconds).map(speed.of)), ticks: { includeBounds: false, callback: v => speed.text(v) } }),
      marks: study.anchor === "default" ? [...starts, { axis: "y", at: 1, solid: true }] : starts,
    });
  },

  /** Measured time against the cost model's estimate. Returns the rank correlation. */
  estimates(host, study) {
    const timed = study.trials.filter(t => t.seconds && t.estimate), templates = [...new Set(timed.map(t => t.template))];
    const datasets = templates.map((template, i) => {
      const own = timed.filter(t => t.template === template);
      return { label: template, ...Charts.look(i), data: own.map(t => ({ x: t.estimate, y: t.seconds })),
        describe: k => [`estimated ${Text.seconds(own[k].estimate)}`, ...describe(study, own[k])] };
    });
    const xs = timed.map(t => t.estimate), ys = timed.map(t => t.seconds), low = Math.min(least(xs), least(ys)) / 1.25, high = Math.max(most(xs), most(ys)) * 1.25;
    datasets.push({ label: "measured = estimated", type: "line", data: [{ x: low, y: low }, { x: high, y: high }], pointRadius: 0, pointHitRadius: 0,
      borderDash: [4, 4], borderWidth: 1.2, pointStyle: "line", borderColor: Charts.colour("soft"), backgroundColor: Charts.colour("soft") });
    Charts.draw(host, {
      label: "Measured time against the cost model's estimate", datasets, height: 340,
      x: Charts.logAxis("estimated time of a call", xs, v => Text.seconds(v, 2)), y: Charts.logAxis("measured time of a call", ys, v => Text.seconds(v, 2)),
    });
    return correlation(ranks(xs), ranks(ys));
  },

  /** Winners between memory and multipliers; of one study among `studies` when it is given. */
  roofline(host, device, studies, one) {
    const roofs = Roofs.of(device, studies), points = { winner: [], vendor: [], others: [] };
    for (const study of studies) {
      const winner = winnerOf(study), at = record => ({ x: study.flops / study.bytes, y: study.flops / record.seconds, study, record });
      if (winner && winner.seconds) (one && study !== one ? points.others : points.winner).push(at(winner));
      if (study.vendor && (!one || study === one)) points.vendor.push(at(study.vendor));
    }
    const set = (label, list, look) => ({ label, ...look, data: list, describe: i => [Text.title(list[i].study),
      `${Text.config(list[i].record).split(" ")[0]}: ${Text.flops(list[i].y)}`, `${Text.significant(list[i].x)} FLOP per byte`,
      ...Roofs.shares(roofs, list[i])] });
    const all = [...points.winner, ...points.vendor, ...points.others], xs = all.map(p => p.x), ys = all.map(p => p.y);
    const top = roofs.fastest.value, left = Math.min(...xs, roofs.peak ? top / roofs.peak : Infinity) / 2, right = Math.max(...xs) * 2;
    const memory = (rate, label, dash) => ({ label, type: "line", pointRadius: 0, pointHitRadius: 0, borderDash: dash, borderWidth: 1.5, pointStyle: "line",
      borderColor: Charts.colour("ink"), backgroundColor: Charts.colour("ink"), data: [left, Math.max(left, Math.min(right, top / rate))].map(x => ({ x, y: Math.min(top, x * rate) })) });
    const datasets = [set("winner", points.winner, Charts.look(0)), set("vendor library", points.vendor, Charts.look(1, true)),
      set("winners of other problems", points.others, Charts.look(4, true))];
    if (roofs.peak) datasets.push(memory(roofs.peak, `solid: memory at its peak, ${Text.bandwidth(roofs.peak)}`, []));
    if (roofs.read) datasets.push(memory(roofs.read, `dotted: reading, as measured, ${Text.bandwidth(roofs.read)}`, [2, 3]));
    datasets.push({ ...memory(0, `dashed: fastest measured, ${Text.flops(top)} (${roofs.fastest.who})`, [7, 4]), data: [left, right].map(x => ({ x, y: top })) });
    const floor = Math.min(...ys, ...(roofs.peak ? [left * roofs.peak] : [])) / 1.5;
    Charts.draw(host, {
      label: "Roofline: operations a second against operations a byte", datasets: datasets.filter(d => d.data.length), height: 340,
      x: Charts.axis("arithmetic intensity, FLOP per byte of operands and result", { log: true, min: left, max: right, ticks: { callback: v => Text.significant(v) } }),
      y: Charts.axis("rate", { log: true, min: floor, max: top * 1.6, ticks: { callback: v => Text.flops(v) } }),
    });
    return roofs;
  },

  /** One small chart a parameter: the speeds of its values. Returns those that the search held at one value. */
  parameters(host, study, template) {
    const timed = study.trials.filter(t => t.template === template && t.seconds), fixed = [], effects = [];
    const speed = Speed(study), all = timed.map(speed.of), room = .06 * (most(all) - least(all)) || .05 * most(all);
    for (const name of Object.keys(timed[0].config)) {
      const values = [...new Set(timed.map(t => t.config[name]))].sort((x, y) => x - y);
      if (values.length < 2) { fixed.push(`${name}=${values[0]}`); continue; }
      effects.push({ name, values, share: explained(timed, all, name, values) });
    }
    effects.sort((x, y) => y.share - x.share);
    for (const { name, values, share } of effects) {
      const place = plot(), groups = values.map(v => timed.filter(t => t.config[name] === v));
      const documented = ((study.parameters || {})[template] || {})[name];
      host.append(el("figure", {}, el("h3", {}, name), el("figcaption", {}, el("b", {}, Text.percent(share, 0)), " of the variance", documented ? `; ${documented}` : ""), place));
      const points = groups.flatMap((group, g) => group.map((t, i) => ({ x: g + (group.length > 1 ? (i / (group.length - 1) - .5) * .5 : 0), y: speed.of(t), trial: t })));
      Charts.draw(place, {
        label: `${name}: speed by value`, height: 150, legend: false,
        datasets: [
          { ...Charts.look(2), pointStyle: "line", pointRadius: 13, pointHoverRadius: 13, pointBorderWidth: 2.5, borderColor: Charts.colour("ink"),
            data: groups.map((group, x) => ({ x, y: median(group.map(speed.of)) })),
            describe: i => [`${name}=${values[i]}: median ${speed.text(median(groups[i].map(speed.of)), 4)} ${anchorOf(study)}`, Text.plural(groups[i].length, "candidate")] },
          { ...Charts.look(0), pointRadius: 2.5, data: points, describe: i => describe(study, points[i].trial) }],
        x: Charts.axis("", { title: { display: false }, min: -.6, max: values.length - .4, grid: { display: false },
          afterBuildTicks: scale => { scale.ticks = values.map((_, value) => ({ value })); }, ticks: { autoSkip: false, maxRotation: 60, callback: v => values[v] } }),
        y: Charts.axis(speed.short, { min: least(all) - room, max: most(all) + room, ticks: { maxTicksLimit: 4, includeBounds: false, callback: v => speed.text(v, 2) } }),
      });
    }
    return fixed;
  },
};

/** Share of the variance of log(speed) between the values of a parameter. */
function explained(trials, speeds, name, values) {
  const logs = speeds.map(Math.log), mean = list => list.reduce((s, x) => s + x, 0) / list.length, all = mean(logs);
  const total = logs.reduce((s, x) => s + (x - all) ** 2, 0);
  const between = values.reduce((s, value) => {
    const own = logs.filter((_, i) => trials[i].config[name] === value);
    return s + own.length * (mean(own) - all) ** 2;
  }, 0);
  return total ? between / total : 0;
}

/** What is known of a device's limits: facts of the log and of the measurements, none assumed. */
const Roofs = {
  of(device, studies) {
    let fastest = { value: 0, who: "" }, read = 0;
    for (const study of studies) {
      for (const record of [...(study.finals ? study.finals.records : []), ...study.trials])
        if (record.seconds && study.flops / record.seconds > fastest.value)
          fastest = { value: study.flops / record.seconds, who: Text.config(record).split(" ")[0] };
      const measured = study.environment.read;
      if (measured && measured.seconds > 0) read = Math.max(read, measured.bytes / measured.seconds);
    }
    return { peak: device.memory_bandwidth || 0, read, fastest };
  },
  shares(roofs, { x, y }) {
    const shares = [];
    if (roofs.peak) shares.push(`${Text.percent(y / (x * roofs.peak))} of what memory at its peak allows`);
    if (roofs.read) shares.push(`${Text.percent(y / (x * roofs.read))} of what reading as measured allows`);
    return [...shares, `${Text.percent(y / roofs.fastest.value)} of the fastest measured here`];
  },
};
