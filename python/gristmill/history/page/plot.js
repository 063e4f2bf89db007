// What all charts share, by uPlot: one time axis, which can be zoomed; values in the legends, also without a pointer.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const phaseColour = (phase) => colour("--c" + (phase % 6));
const end_s = Math.max(job.end_ms, 1) / 1e3;
const WHOLE = [1, 2, 5].flatMap((_, i, all) => Array.from({length: 16}, (_one, power) => all[i] * 10 ** power))
  .sort((a, b) => a - b); // steps between the ticks of what is counted

const charts = [];
let view = [0, end_s]; // the seconds that are shown

// --- zoom ---

function zoom(from, to) {
  const least = Math.min(end_s, Math.max(end_s / 1e5, 0.002));
  const width = Math.min(Math.max(to - from, least), end_s);
  const begin = Math.min(Math.max(from, 0), end_s - width);
  view = [begin, begin + width];
  const all = width >= end_s;
  $("zoom-range").textContent = all ? "" : `${seconds(view[0])} to ${seconds(view[1])}`;
  $("zoom-out").disabled = $("zoom-all").disabled = all;
  for (const {plot, timed, refresh} of charts) {
    if (!timed) continue;
    if (refresh) plot.setData(refresh(), false);
    plot.setScale("x", {min: view[0], max: view[1]});
    plot.setLegend({idx: null});
  }
}
function zoomBy(factor) {
  const middle = (view[0] + view[1]) / 2, half = ((view[1] - view[0]) * factor) / 2;
  zoom(middle - half, middle + half);
}
$("zoom-in").addEventListener("click", () => zoomBy(0.5));
$("zoom-out").addEventListener("click", () => zoomBy(2));
$("zoom-all").addEventListener("click", () => zoom(0, end_s));

// --- a chart ---

function axes(show, whole) {
  const line = {stroke: colour("--line"), width: 1};
  const axis = {stroke: colour("--soft"), grid: line, ticks: line, font: "12px system-ui"};
  return [
    {...axis, values: (_, ticks) => ticks.map((t) => +t.toFixed(6) + " s")},
    {...axis, size: 76, values: (_, ticks) => ticks.map(show), ...(whole ? {incrs: WHOLE} : {})},
  ];
}

// The highest value of a series between two places of its x axis.
function highest(data, index, [from, to]) {
  let most = 0;
  for (let at = 0; at < data[0].length; at++) {
    if (data[0][at] >= from && data[0][at] <= to && data[index][at] > most) most = data[index][at];
  }
  return most;
}

const cursor = {
  sync: {key: "job"}, drag: {x: true, y: false, setScale: false}, bind: {dblclick: () => () => zoom(0, end_s)},
};
const zoomed = (u) => {
  if (u.select.width > 2) zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
  u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
};
const fromZero = (_, low, high) => [0, high > 0 ? high * 1.05 : 1];

// A line across the chart where another process resumed the job.
function resumes(u) {
  u.ctx.save();
  u.ctx.strokeStyle = colour("--waste");
  u.ctx.lineWidth = 2 * devicePixelRatio;
  for (const t of job.resumed_ms ?? []) {
    const x = u.valToPos(t / 1e3, "x", true);
    if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
    u.ctx.beginPath();
    u.ctx.moveTo(x, u.bbox.top);
    u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
    u.ctx.stroke();
  }
  u.ctx.restore();
}

function chart(id, height, series, data, show, {whole, y = fromZero, refresh, ...more} = {}) {
  const target = $(id);
  const at = {label: "", value: (_, t) => (t == null ? "highest:" : "at " + seconds(t))};
  const plot = new uPlot({
    width: target.clientWidth, height, cursor, axes: axes(show, whole), legend: {live: true},
    scales: {x: {time: false, range: (_, low, high) => [low, high]}, y: {range: y}},
    series: [at, ...series], ...more, hooks: {...more.hooks, draw: [...(more.hooks?.draw ?? []), resumes], setSelect: [zoomed]},
  }, data, target);
  charts.push({plot, target, timed: true, refresh});
}
const line = (label, name, show, more) => ({
  label, stroke: colour(name), width: 1.5, points: {show: false},
  value: (u, v, index) => show(v == null ? highest(u.data, index, view) : v), ...more,
});

// Areas on top of each other: each series drawn with what lies below it, the highest first.
function stacked(id, height, names, colours, find, show, more) {
  let own;
  const data = () => {
    const {times, series} = find();
    own = series;
    const sums = [];
    series.forEach((values, i) => sums.push(i ? values.map((value, at) => value + sums[i - 1][at]) : values));
    return [times, ...sums.reverse()];
  };
  const order = names.map((_, i) => i).reverse();
  const drawn = order.map((i) => ({
    label: names[i], stroke: colours[i], fill: colours[i], width: 0, points: {show: false},
    paths: uPlot.paths.stepped({align: 1}),
    value: (_u, _v, _s, at) => show(at == null ? own[i].reduce((a, b) => Math.max(a, b), 0) : own[i][at]),
  }));
  chart(id, height, drawn, data(), show, {...more, refresh: data});
}

// --- what ran ---

// How many attempts of each phase run at each of many moments of the view; waste last.
function running(attempts, phases) {
  const points = 600, [from, to] = view.map((s) => s * 1e3), step = (to - from) / points;
  const series = Array.from({length: phases.length + 1}, () => new Float64Array(points + 1));
  for (const a of attempts) {
    const of = series[wasted(a) ? phases.length : a.phase];
    const start = Math.max((a.start - from) / step, 0), end = Math.min((a.end - from) / step, points);
    if (end < start) continue;
    const first = Math.floor(start), last = Math.floor(end);
    if (first === last) {
      of[first] += end - start; // shorter than a moment: its share of it
    } else { // of the first and the last moment, the parts that it covers
      of[first] += first + 1 - start;
      for (let at = first + 1; at < last; at++) of[at] += 1;
      of[last] += end - last;
    }
  }
  return {times: Array.from({length: points + 1}, (_, at) => (from + at * step) / 1e3), series};
}

// --- all of them ---

// Draw, again in other colours when these change, and as wide as the window; then say that it is done.
function keepDrawn(draw) {
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
}
