// Draws a job's report from the JSON in the page. All text comes in as text, never as markup.
"use strict";
const job = JSON.parse(document.getElementById("data").textContent);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const $ = (id) => document.getElementById(id);

// --- amounts ---

function bytes(amount) {
  for (const [unit, factor] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (amount >= factor) return (amount / factor).toPrecision(3) + " " + unit;
  }
  return Math.round(amount) + " B";
}
const count = (number) => Math.round(number).toLocaleString("en");
const seconds = (s) => (s < 0.1 ? s.toFixed(3) : s < 100 ? s.toPrecision(3) : Math.round(s)) + " s";
const percent = (share) => Math.round(share * 100) + " %";

// --- text and tables ---

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// Columns are [title, cell of a row, whether it is a number]; a table without rows is not shown.
function table(id, columns, rows) {
  const target = $(id);
  target.hidden = rows.length === 0;
  const head = target.createTHead().insertRow();
  for (const [title, , number] of columns) {
    const cell = element("th", title, number ? "number" : "");
    cell.scope = "col";
    head.append(cell);
  }
  const body = target.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const [, of, number] of columns) line.append(element("td", of(row), number ? "number" : ""));
  }
}

$("title").textContent = `${job.command} ${job.job_id}`;
$("subtitle").textContent =
  `${job.state}, began ${new Date(job.unix_ms).toISOString().replace("T", " ").slice(0, 19)} UTC, ` +
  `Gristmill ${job.program}`;
for (const [name, value] of job.figures) {
  const box = element("div");
  box.append(element("dt", name), element("dd", value));
  $("figures").append(box);
}
if (job.error) {
  $("error").textContent = job.error;
  $("error").hidden = false;
}
table("limits", [
  ["Phase", (u) => u.name], ["Took", (u) => seconds(u.seconds), true], ["Held back by", (u) => u.limit],
  ["Processors busy", (u) => percent(u.busy), true], ["Taken by the host", (u) => percent(u.steal), true],
  ["Device reads", (u) => bytes(u.read_rate) + "/s", true],
  ["Device writes", (u) => bytes(u.write_rate) + "/s", true],
], job.uses);
table("counters", [
  ["Counter", (c) => c[0]], ["Map", (c) => count(c[1]), true], ["Reduce", (c) => count(c[2]), true],
  ["Total", (c) => count(c[3]), true],
], job.counters);
table("options", [["Option", (o) => o[0]], ["Value", (o) => o[1]]], job.options);
$("reason").textContent = job.plan.reason || "";
table("stages", [
  ["Stage", (s) => s.name], ["Tasks", (s) => count(s.tasks), true], ["Reads", (s) => bytes(s.reads), true],
  ["Writes", (s) => bytes(s.writes), true],
], job.plan.stages || []);
table("reservations", [["For", (m) => m.name], ["Bytes", (m) => bytes(m.bytes), true]], job.plan.reservations || []);
table("samples", [
  ["Time", (s) => seconds(s[0]), true], ["Processors, job", (s) => s[1].toFixed(2), true],
  ["Memory", (s) => bytes(s[6]), true], ["Reads", (s) => bytes(s[9]) + "/s", true],
  ["Writes", (s) => bytes(s[10]) + "/s", true],
], job.samples);

// --- attempts: columns task, attempt, phase, start, end, outcome, output bytes ---

const [TASK, ATTEMPT, PHASE, START, END, OUTCOME] = [0, 1, 2, 3, 4, 5];
const attempts = job.attempts;
const outcomes = ["running", "succeeded", "failed", "killed"];
const wasted = (a) => a[OUTCOME] > 1;
const endOf = (a) => (a[END] < 0 ? job.end_ms : a[END]);

table("phases", [
  ["Phase", (p) => p.name], ["Attempts", (p) => count(p.n), true], ["Shortest", (p) => seconds(p.least / 1e3), true],
  ["Median", (p) => seconds(p.median / 1e3), true], ["Longest", (p) => seconds(p.most / 1e3), true],
], job.phases.map((name, phase) => {
  const spans = attempts.filter((a) => a[PHASE] === phase).map((a) => endOf(a) - a[START]).sort((a, b) => a - b);
  return {name, n: spans.length, least: spans[0], median: spans[spans.length >> 1], most: spans[spans.length - 1]};
}).filter((p) => p.n > 0));
table("failed", [
  ["Task", (a) => count(a[TASK]), true], ["Attempt", (a) => count(a[ATTEMPT] + 1), true],
  ["Phase", (a) => job.phases[a[PHASE]]], ["How", (a) => outcomes[a[OUTCOME]]],
  ["Why", (a) => job.errors[a[TASK] + "-" + a[ATTEMPT]] || ""],
], attempts.filter(wasted).slice(0, 1000));

// How many attempts of each phase run at each of many moments; waste last.
function running() {
  const points = 600, step = Math.max(job.end_ms, 1) / points;
  const kinds = job.phases.length + 1;
  const series = Array.from({length: kinds}, () => new Float64Array(points + 1));
  for (const a of attempts) {
    const of = series[wasted(a) ? kinds - 1 : a[PHASE]];
    const first = Math.floor(a[START] / step), last = Math.floor(endOf(a) / step);
    if (first === last) {
      of[first] += (endOf(a) - a[START]) / step; // shorter than a moment: its share of it
    } else {
      for (let at = first; at < last; at++) of[at] += 1;
    }
  }
  const times = Array.from({length: points + 1}, (_, at) => (at * step) / 1e3);
  return {times, series};
}

// The lane of each attempt: the first that is free.
function lanes() {
  const ends = [];
  const of = attempts.map((a) => {
    let lane = ends.findIndex((end) => end <= a[START]);
    if (lane < 0) lane = ends.length;
    ends[lane] = endOf(a);
    return lane;
  });
  return {of, count: ends.length};
}

// --- charts: one time axis for all ---

const end_s = Math.max(job.end_ms, 1) / 1e3;
const cursor = {sync: {key: "job"}, drag: {x: true, y: false}};
const phaseColour = (phase) => colour("--c" + (phase % 6));

function axes(show) {
  const line = {stroke: colour("--line"), width: 1};
  const axis = {stroke: colour("--soft"), grid: line, ticks: line, font: "12px system-ui"};
  return [
    {...axis, values: (_, ticks) => ticks.map((t) => t + " s")},
    {...axis, size: 76, values: (_, ticks) => ticks.map(show)},
  ];
}

const charts = [];
function chart(id, height, series, data, show, more) {
  const target = $(id);
  const options = {
    width: target.clientWidth, height, cursor, axes: axes(show), legend: {live: true},
    scales: {x: {time: false, range: () => [0, end_s]}, y: {range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1]}},
    series: [{label: "time", value: (_, t) => (t == null ? "" : seconds(t))}, ...series],
    ...more,
  };
  charts.push({plot: new uPlot(options, data, target), target});
}
const line = (label, name, show, more) => ({
  label, stroke: colour(name), width: 1.5, value: (_, v) => (v == null ? "" : show(v)), points: {show: false}, ...more,
});

// Areas on top of each other: each series drawn with what lies below it, the highest first.
function stacked(id, height, names, colours, times, series, show) {
  const sums = series.map(() => new Float64Array(times.length));
  for (let at = 0; at < times.length; at++) {
    let sum = 0;
    series.forEach((values, i) => { sum += values[at]; sums[i][at] = sum; });
  }
  const order = series.map((_, i) => i).reverse();
  const drawn = order.map((i) => ({
    label: names[i], stroke: colours[i], fill: colours[i], width: 0, points: {show: false},
    paths: uPlot.paths.stepped({align: 1}),
    value: (_u, _v, _s, at) => (at == null ? "" : show(series[i][at])),
  }));
  chart(id, height, drawn, [times, ...order.map((i) => sums[i])], show);
}

function draw() {
  for (const {plot} of charts) plot.destroy();
  charts.length = 0;
  const found = running();
  const used = found.series.map((values, i) => i).filter((i) => found.series[i].some((v) => v > 0));
  const names = [...job.phases, "waste"];
  stacked("chart-running", 200, used.map((i) => names[i]),
    used.map((i) => (i === job.phases.length ? colour("--waste") : phaseColour(i))),
    found.times, used.map((i) => found.series[i]), (v) => (Math.round(v * 100) / 100).toString());

  const lane = lanes();
  const bars = (u) => {
    const height = u.bbox.height / Math.max(lane.count, 1);
    attempts.forEach((a, i) => {
      const left = u.valToPos(a[START] / 1e3, "x", true), right = u.valToPos(endOf(a) / 1e3, "x", true);
      u.ctx.fillStyle = wasted(a) ? colours.waste : colours[a[PHASE]];
      u.ctx.fillRect(left, u.bbox.top + lane.of[i] * height + 1, Math.max(right - left - 1, 1), Math.max(height - 2, 1));
    });
  };
  const colours = Object.assign(job.phases.map((_, i) => phaseColour(i)), {waste: colour("--waste")});
  chart("chart-lanes", Math.min(60 + 22 * Math.max(lane.count, 1), 480), [{label: "lanes", show: false}],
    [[0, end_s], [0, lane.count]], (v) => (Number.isInteger(v) ? String(v) : ""), {
      hooks: {draw: [bars]}, legend: {show: false},
      scales: {x: {time: false, range: () => [0, end_s]}, y: {range: () => [0, Math.max(lane.count, 1)]}},
    });

  const column = (i) => job.samples.map((s) => s[i]);
  const times = column(0), cores = (v) => v.toFixed(2);
  chart("chart-cpu", 180, [
    line("job, user", "--c0", cores, {fill: colour("--c0") + "33"}), line("job, kernel", "--c1", cores),
    line("machine, all", "--soft", cores, {dash: [4, 3]}), line("waiting for devices", "--c4", cores),
    line("taken by the host", "--waste", cores),
  ], [times, column(1), column(2), column(3), column(4), column(5)], (v) => String(Math.round(v * 100) / 100));
  chart("chart-memory", 180, [
    line("anonymous", "--c0", bytes, {fill: colour("--c0") + "33"}), line("mapped files", "--c2", bytes),
    line("reserved", "--c1", bytes, {dash: [4, 3]}),
  ], [times, column(6), column(7), column(8)], bytes);
  const rate = (v) => bytes(v) + "/s";
  chart("chart-disk", 180, [
    line("device reads", "--c0", rate), line("device writes", "--c1", rate),
    line("network in", "--c2", rate), line("network out", "--c3", rate),
  ], [times, column(9), column(10), column(11), column(12)], rate);

  $("parts-caption").textContent = job.parts.length
    ? `${job.parts_unit} written by each task of the last stage, in the order of the keys` : "not known";
  if (job.parts.length) {
    const target = $("chart-parts"), show = job.parts_unit === "bytes" ? bytes : count;
    const plot = new uPlot({
      width: target.clientWidth, height: 180, axes: axes(show).map((axis, i) => (i ? axis : {...axis, values: null})),
      scales: {x: {time: false, range: (_u, low, high) => [low - 0.5, high + 0.5]}, y: {range: (_u, _l, high) => [0, high * 1.05 || 1]}},
      series: [{label: "task"}, line(job.parts_unit, "--c0", show, {
        fill: colour("--c0"), paths: uPlot.paths.bars({size: [0.8, 60]}),
      })],
    }, [job.parts.map((_, i) => i), job.parts], target);
    charts.push({plot, target});
  }
}

draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
let pending = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(() => {
    for (const {plot, target} of charts) plot.setSize({width: target.clientWidth, height: plot.height});
  });
});
document.body.dataset.drawn = "yes";
document.body.dataset.milliseconds = String(Math.round(performance.now()));
