// The two views, "#/" of all problems and "#/<device>/<problem>" of one, and what switches between them.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);
const view = document.getElementById("view");
const deviceName = ({ device }) => device.name ? `${device.name} (${device.arch})` : device.arch;
const counted = counts => Object.entries(counts).map(([word, count]) => `${count} ${word}`).join(", ");
const failures = study => study.trials.filter(t => !["ok", "dropped", "duplicate"].includes(t.status));

// --- all problems

function tile(value, text, detail) {
  return el("div", { class: "tile" }, el("b", { "data-value": value.raw }, value.text), el("span", {}, text), detail && el("span", {}, detail));
}

function totalsTile(totals, baseline, device) {
  if (!totals.count) return null;
  const weighted = device.equal_weights ? `by total time ${Text.times(totals.weighted)}` : `weighted ${Text.times(totals.weighted)}`;
  return tile({ text: Text.times(totals.geomean), raw: totals.geomean }, `as fast as ${baseline}, geometric mean of ${totals.count}`,
    `worst ${Text.times(totals.worst)}, best ${Text.times(totals.best)}, ${weighted}`);
}

/** How many problems each verdict has, losses too. */
function verdictsTile(device) {
  const { verdicts, count } = device.against_vendor;
  if (!count) return null;
  const all = word => Object.entries(verdicts).reduce((sum, [name, n]) => sum + (name.endsWith(word) ? n : 0), 0);
  return tile({ text: ["win", "tie", "AMBG", "loss"].map(all).join(" / ") }, "win / tie / AMBG / loss against the vendor library",
    "a win or loss is one of the whole 95 % interval, beyond the noise; AMBG reaches over that border");
}

function overviewChart(host, device) {
  const studies = device.studies.filter(s => s.against_default || s.against_vendor)
    .sort((x, y) => (y.against_vendor || y.against_default)[0] - (x.against_vendor || x.against_default)[0]);
  const narrow = window.innerWidth < 700, cut = text => narrow && text.length > 22 ? text.slice(0, 21) + "…" : text;
  const set = (label, field, i) => {
    const own = studies.map((study, y) => ({ study, y })).filter(({ study }) => study[field]);
    return { label, ...Charts.look(i, i > 0), pointRadius: 5, interval: "x",
      data: own.map(({ study, y }) => ({ x: study[field][0], y, low: study[field][1], high: study[field][2] })),
      describe: k => [Text.title(own[k].study), `${Text.times(own[k].study[field][0])} ${Text.interval(own[k].study[field])} ${label.replace("winner against ", "")}`,
        ...Text.wrap(Text.config(winnerOf(own[k].study)))] };
  };
  const ends = studies.flatMap(s => [s.against_default, s.against_vendor].filter(Boolean).flatMap(([, low, high]) => [low, high]));
  Charts.draw(host, {
    label: "Winners against the vendor library and the default", height: 100 + 24 * studies.length,
    datasets: [set("winner against the vendor library", "against_vendor", 0), set("winner against the default", "against_default", 1)].filter(s => s.data.length),
    x: Charts.axis("times as fast (95 % interval)", { log: true, min: Math.min(...ends, .95) / 1.05, max: Math.max(...ends, 1.05) * 1.05, ticks: { callback: v => Text.significant(v) + "×" } }),
    y: Charts.axis("", { min: -.6, max: studies.length - .4, reverse: true, title: { display: false },
      afterBuildTicks: scale => { scale.ticks = studies.map((_, value) => ({ value })); },
      ticks: { autoSkip: false, color: Charts.colour("ink"), callback: v => studies[v] ? cut(Text.title(studies[v])) : "" } }),
    marks: [{ axis: "x", at: 1, solid: true }],
  });
}

function speedColumns(title, field) {
  return [{ title, number: true, value: s => s[field] && s[field][0], show: s => s[field] ? Text.times(s[field][0]) : "–" },
    { title: "95 %", number: true, help: "interval of the column before", value: s => s[field] && s[field][1], show: s => s[field] ? Text.interval(s[field]) : "–" }];
}

function problemsTable(device, d) {
  const columns = [
    { title: "problem", class: "first", value: s => Text.title(s), show: s => el("a", { href: `#/${d}/${device.studies.indexOf(s)}`, title: s.key }, Text.title(s)) },
    { title: "outcome", value: s => s.outcome, show: s => badge(s.outcome) },
    ...speedColumns("× default", "against_default"), ...speedColumns("× vendor", "against_vendor"),
    { title: "vendor", value: s => s.vendor_verdict, show: s => s.vendor_verdict ? badge(s.vendor_verdict) : "–" },
    { title: "time", help: "of a call of the winner", number: true, value: s => winnerOf(s) && winnerOf(s).seconds, show: s => winnerOf(s) ? Text.seconds(winnerOf(s).seconds) : "–" },
    { title: "rate", number: true, value: s => winnerOf(s) && winnerOf(s).seconds && s.rate.per_call / winnerOf(s).seconds, show: s => winnerOf(s) ? Text.rate(s, winnerOf(s).seconds) : "–" },
    { title: "noise", help: "floor: what the default differs from itself", number: true, value: s => s.finals && s.finals.noise_floor, show: s => s.finals ? Text.percent(s.finals.noise_floor, 2) : "–" },
    { title: "tried", help: "candidates", number: true, value: s => s.trials.length },
    { title: "failed", number: true, value: s => failures(s).length },
  ];
  if (!device.equal_weights) columns.push({ title: "weight", number: true, value: s => s.weight });
  return table(columns, device.studies, { name: `problems ${d}`, key: s => s.key }).element;
}

function showDevice(device, d) {
  const place = plot(), roof = plot(), measured = device.studies.some(s => s.finals && s.finals.winner);
  const roofText = el("p", { class: "small soft" });
  view.append(el("section", { id: `device-${d}` }, el("h1", {}, deviceName(device)),
    el("p", { class: "soft" }, `${Text.plural(device.studies.length, "problem")}: ${counted(device.outcomes)}. `,
      "“Unchanged” means that nothing beat the default config by more than the noise; it counts as 1 in the means. ",
      device.outcomes["default failed"] ? "Where the default failed, there is nothing to compare the winner with." : ""),
    el("div", { class: "tiles" }, totalsTile(device.against_default, "the default", device), totalsTile(device.against_vendor, "the vendor library", device), verdictsTile(device)),
    measured && el("div", { class: "cards" },
      card("Winners against the vendor library and the default", "Right of 1: the winner is faster. Bars are 95 % intervals.", place),
      card("Between memory and multipliers", null, roofText, roof)),
    card("Problems", "Titles lead to the search of each problem; heads sort.", problemsTable(device, d))));
  if (!measured) return;
  overviewChart(place, device);
  roofText.textContent = roofText_of(Plots.roofline(roof, device.device, device.studies));
}

function roofText_of(roofs) {
  const known = roofs.peak ? "The solid line is the device's peak memory bandwidth. " : "No peak memory bandwidth is known for this device, so no line stands for it. ";
  return "Bytes are those of reading each operand and writing the result once. " + known + (roofs.read ? "The dotted line is a kernel that only reads, as measured in the finals. " : "") +
    "The peak rate of the multipliers is not in the records; the dashed line is the fastest that was measured.";
}

// --- one problem

/** How it ended, in the words of `deepgen lock show`. */
function statement(study) {
  const finals = study.finals;
  if (study.outcome === "locked") return "Not searched in this build: the lock has the result of an earlier search.";
  if (study.outcome === "not searched") return "No records: the problem is in a lock alone.";
  if (!finals) return `The search is not finished: ${Text.plural(study.trials.length, "candidate")} so far, no finals.`;
  if (!finals.winner) return `No winner: ${finals.reason}.`;
  return finals.statement ? `${finals.statement}.` : `${finals.reason}.`;
}

/** How fast the winner is where the hold-out was also timed in bursts, or with each launch waiting for the one before. */
function regimes(study, winner) {
  const holdout = study.environment.holdout || {}, speed = ([low, median, high]) => [1 / median, 1 / high, 1 / low];
  return Object.entries(holdout.regimes || {}).map(([name, regime]) => {
    const arm = (winner.origin === "default" ? regime.arms[0] : regime.arms.find(a => a.sha256 === holdout.sha256)) || {};
    const against = (ratio, whom) => ratio ? `, ${Text.times(speed(ratio)[0])} ${whom} ${Text.interval(speed(ratio))}` : "";
    const times = arm.seconds ? Text.seconds(arm.seconds) + against(arm.default, "the default") + against(arm.vendor, "the vendor library") : "not timed";
    return [name, times + (regime.unstable ? `; unstable: ${regime.unstable}` : "")];
  });
}

function facts(study, device) {
  const winner = winnerOf(study), finals = study.finals, rows = [["problem", el("code", {}, study.key)], ["device", deviceName(device)]];
  if (winner) {
    rows.push(["winner", el("code", { id: "winner" }, Text.config(winner))], ["why", finals.reason + (finals.stable ? "" : `; unstable: ${study.environment.unstable || "too much interference"}`)]);
    if (winner.seconds) rows.push(["time", `${Text.seconds(winner.seconds)} (quartiles ${Text.seconds(winner.quartile1)} to ${Text.seconds(winner.quartile3)}), ${Text.rate(study, winner.seconds)}`]);
    rows.push(...regimes(study, winner), ["code", `${Text.bytes(winner.code_bytes || 0)}, workspace ${Text.bytes(winner.workspace || 0)}, largest error ${Text.significant(winner.error)} of the tolerance`]);
  }
  for (const entry of study.locked || [])
    rows.push(["locked", el("span", {}, el("code", {}, entry.config), ` ${entry.winner ? "(the winner)" : "(not this search’s winner)"}${entry.stale ? "; stale: " + entry.stale : ""}`)]);
  if (!(study.locked || []).length) rows.push(["locked", "not in the lock files of this report"]);
  const known = { regime: "tuned for calls that are", driver: "driver", tool: "measured by", profile: "profile", power_limit_watts: "power limit, W", other_processes: "other processes on the GPU", unwatched: "not watched", clock_mhz: "SM clock, MHz (5 %, median, 95 %)" };
  for (const [key, name] of Object.entries(known))
    if (study.environment[key] !== undefined) rows.push([name, [study.environment[key]].flat().join(", ")]);
  return el("dl", {}, rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** Failures by status and reason; numbers in a reason do not tell two apart. */
function failuresCard(study) {
  const groups = new Map(), failed = failures(study);
  for (const trial of failed) {
    const reason = (trial.detail || "no detail").split("\n")[0].replace(/\d+/g, "#");
    const key = trial.status + " " + reason;
    if (!groups.has(key)) groups.set(key, { status: trial.status, reason, trials: [] });
    groups.get(key).trials.push(trial);
  }
  const rows = [...groups.values()].sort((x, y) => y.trials.length - x.trials.length);
  if (!rows.length) return card("Failures", "None of the candidates failed.");
  return card("Failures by reason", `${failed.length} of ${Text.plural(study.trials.length, "candidate")}; # stands for any number. A failure never stops a search.`,
    table([
      { title: "status", value: g => g.status },
      { title: "count", number: true, value: g => g.trials.length, show: g => el("span", {}, el("span", { class: "meter", style: `width:${60 * g.trials.length / failed.length}px` }), " " + g.trials.length) },
      { title: "reason", value: g => g.reason },
      { title: "for example", class: "config", value: g => Text.config(g.trials[0]), show: g => el("span", {}, el("code", {}, Text.config(g.trials[0])), el("br"), el("span", { class: "soft" }, (g.trials[0].detail || "").split("\n")[0])) },
    ], rows, { name: "failures" }).element);
}

function candidatesCard(study) {
  const rows = [...study.trials.map((record, i) => ({ ...record, n: i + 1 })), ...(study.finals ? study.finals.records : []).map((record, i) => ({ ...record, n: study.trials.length + i + 1 }))];
  const ratio = field => r => r.seconds ? 1 / r[field] : undefined;
  const columns = [
    { title: "#", number: true, up: true, value: r => r.n }, { title: "stage", value: r => r.stage },
    { title: "candidate", up: true, value: r => r.candidate },
    { title: "status", value: r => r.status, show: r => [badge(r.status), r.cached && el("span", { class: "soft", title: "the time, or the verdict that it is bad, is an earlier run’s" }, " cached")] },
    { title: "× " + anchorOf(study), number: true, value: ratio("ratio"), show: r => r.seconds ? Text.times(1 / r.ratio) : "–" },
    { title: "95 %", number: true, value: ratio("high"), show: r => r.seconds ? Text.interval([0, 1 / r.high, 1 / r.low]) : "–" },
    { title: "time", number: true, up: true, value: r => r.seconds, show: r => r.seconds ? Text.seconds(r.seconds) : "–" },
    { title: "rate", number: true, value: r => r.seconds && 1 / r.seconds, show: r => r.seconds ? Text.rate(study, r.seconds) : "–" },
    { title: "estimate", number: true, up: true, value: r => r.estimate, show: r => r.estimate ? Text.seconds(r.estimate, 3) : "–" },
    { title: "origin", value: r => r.template === "vendor" ? "vendor" : r.origin },
    { title: "config", class: "config", value: r => Text.config(r), show: r => el("span", {}, el("code", {}, Text.config(r)),
      isWinner(study, r) && el("span", {}, " ", badge("winner")), r.detail && el("span", { class: "soft" }, el("br"), r.detail.split("\n")[0])) },
  ];
  const list = table(columns, rows, { name: "candidates", key: r => `${r.stage}/${r.slot}` }), count = el("span", { class: "soft small", "aria-live": "polite" });
  const search = el("input", { type: "search", placeholder: "filter: words of config, origin, detail", "aria-label": "Filter the candidates" });
  const select = (name, values) => el("select", { "aria-label": name }, el("option", { value: "" }, `${name}: all`), [...new Set(values)].map(v => el("option", { value: v }, v)));
  const stage = select("stage", rows.map(r => r.stage)), status = select("status", rows.map(r => r.status));
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = list.filter(r => (!stage.value || r.stage === stage.value) && (!status.value || r.status === status.value) &&
      words.every(word => `${Text.config(r)} ${r.origin} ${r.detail || ""}`.toLowerCase().includes(word)));
    count.textContent = `${found} of ${rows.length}`;
  };
  for (const control of [search, stage, status]) control.addEventListener("input", apply);
  apply();
  return card("All candidates and finals", null, el("div", { class: "tools" }, search, stage, status, count), list.element);
}

function showParameters(study) {
  const templates = [...new Set(study.trials.map(t => t.template))];
  for (const template of templates) {
    const timed = study.trials.filter(t => t.template === template && t.seconds);
    if (timed.length < 8) continue; // too few to say anything
    const grid = el("div", { class: "multiples" }), held = el("p", { class: "small soft" });
    const place = card(`Parameters of ${template}`, "Speed of the candidates by value; the dash is the median. The share is that of the variance of log(speed) between the values. " +
      "A search does not vary one parameter at a time, so effects overlap: read it as a hint.", grid, held);
    place.classList.add("alone");
    view.append(place);
    const fixed = Plots.parameters(grid, study, template);
    if (fixed.length) held.append("The same in all: ", el("code", {}, fixed.join(" ")));
  }
}

function showProblem(device, study) {
  const [finals, sizes, trials, estimates, roof] = [plot(), plot(), plot(), plot(), plot()], estimateText = el("p", { class: "small soft" }), roofText = el("p", { class: "small soft" });
  const estimated = study.trials.filter(t => t.seconds && t.estimate), left = study.trials.filter(t => t.seconds && !t.estimate);
  const searched = study.trials.some(t => t.seconds), decided = winnerOf(study) && winnerOf(study).seconds;
  view.append(el("h1", {}, Text.title(study), " ", badge(study.outcome)), el("p", { id: "statement" }, statement(study)));
  const overview = card("The problem and its winner", null, facts(study, device));
  view.append(el("div", { class: "cards" }, overview,
    study.finals && study.finals.records.some(r => r.seconds) && card("Finals", "Bars are 95 % intervals." + (study.anchor === "default" ? " A finalist wins that is wholly right of the shaded band, the noise, and is faster in the hold-out, a new process, too; otherwise the default stays." : " The default failed; one of the finalists is the anchor."), finals)));
  if (study.curve) {
    const curve = card("By size", `Rates of the hold-out at the points of the search. A dashed line stands where another kernel begins, with its first ${study.curve.size}.`, sizes);
    curve.classList.add("alone"), view.append(curve);
  }
  if (searched) {
    const search = card("The search", (study.anchor === "default" ? "Each candidate against the default in the same round of measurement; bars are 95 % intervals." : "The default failed, so these are plain rates; bars are quartiles.") + " The line is the best so far.", trials);
    search.classList.add("alone"), view.append(search);
  }
  view.append(el("div", { class: "cards" },
    searched && card("Cost model", null, estimateText, estimates), decided && card("Between memory and multipliers", null, roofText, roof)));
  if (study.finals && study.finals.records.some(r => r.seconds)) Plots.finals(finals, study);
  if (study.curve) Plots.curve(sizes, study);
  if (searched) Plots.trials(trials, study);
  const without = left.length ? ` ${Text.plural(left.length, "candidate")} left out, as the model has no estimate: ${[...new Set(left.map(t => t.no_estimate))].join("; ")}.` : "";
  if (estimated.length) {
    const rho = Plots.estimates(estimates, study);
    estimateText.textContent = `Only the order matters to the search. Rank correlation over ${Text.plural(estimated.length, "candidate")}: ${Text.significant(rho, 2)}.${without}`;
  } else {
    estimateText.textContent = "No timed candidate has an estimate." + without;
  }
  if (decided) roofText.textContent = `Among the problems with the same types. ` + roofText_of(Plots.roofline(roof, device.device, device.studies.filter(s => Text.types(s.problem) === Text.types(study.problem)), study));
  showParameters(study);
  for (const each of [failuresCard(study), candidatesCard(study)]) each.classList.add("alone"), view.append(each);
}

// --- switching

function crumbs(d, p) {
  const device = report.devices[d], count = device ? device.studies.length : 0, nav = document.getElementById("crumbs");
  nav.replaceChildren();
  if (!device) return;
  nav.append(el("a", { href: "#/" }, "all problems"));
  if (p > 0) nav.append(el("a", { href: `#/${d}/${p - 1}`, rel: "prev" }, "← previous"));
  if (p + 1 < count) nav.append(el("a", { href: `#/${d}/${p + 1}`, rel: "next" }, "next →"));
}

function show() {
  Charts.clear();
  view.replaceChildren();
  const [, d, p] = /^#\/(\d+)\/(\d+)$/.exec(location.hash) || [], study = d !== undefined && report.devices[d] && report.devices[d].studies[p];
  crumbs(study ? +d : -1, +p);
  document.title = (study ? Text.title(study) + " – " : "") + "DeepGen report";
  if (study) showProblem(report.devices[d], study);
  else if (report.devices.length) report.devices.forEach(showDevice);
  else view.append(el("p", {}, "No records."));
  view.dataset.ready = location.hash || "#/";
}

const dark = matchMedia("(prefers-color-scheme: dark)"), button = document.getElementById("theme"), themes = ["system", "light", "dark"];
let theme = "system";
function paint() {
  document.documentElement.dataset.theme = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  button.textContent = "Colours: " + theme;
}
button.addEventListener("click", () => { theme = themes[(themes.indexOf(theme) + 1) % 3], paint(), show(); });
dark.addEventListener("change", () => { paint(), show(); });
addEventListener("hashchange", () => { show(), scrollTo(0, 0), view.focus({ preventScroll: true }); });
let width = innerWidth;
addEventListener("resize", () => { if ((width < 700) !== (innerWidth < 700)) show(); width = innerWidth; });
paint();
show();
