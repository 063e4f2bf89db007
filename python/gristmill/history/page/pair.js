// Two jobs on one page: what differs in words and tables, and charts on one time axis, which begins where each began.

const NAMES = ["A", "B"];

// --- words and tables ---

$("title").textContent = "Two jobs: A and B";
job.jobs.forEach((one, at) => {
  const box = element("div"), facts = element("dl", undefined, "facts");
  const began = new Date(one.unix_ms).toLocaleString("sv", {timeZoneName: "short"});
  box.append(element("h3", `${NAMES[at]}: ${one.name ? one.name + ": " : ""}${one.command} ${one.job_id}`));
  box.append(element("p", `${one.state}, began ${began}, Gristmill ${one.program}`, "soft"));
  if (one.error) box.append(element("p", one.error, "error"));
  pairs(facts, one.facts);
  box.append(facts);
  $("heads").append(box);
});
$("sentences").append(...job.sentences.map((text) => element("li", text)));

const dash = "\u2013";
const told = (amount, show) => (amount === null ? dash : show(amount));
// How much more B has than A.
function more(a, b, show) {
  if (a === null || b === null || a === b) return "";
  return (b > a ? "+" : "\u2212") + show(Math.abs(b - a)) + (a > 0 && b > 0 ? `, \u00d7 ${(b / a).toFixed(2)}` : "");
}
table("figures", [["", (f) => f[0]], ["A", (f) => f[1] || dash], ["B", (f) => f[2] || dash]], job.figures);
table("spans", [
  ["Phase", (s) => s[0]], ["A", (s) => told(s[1], seconds), "number"], ["B", (s) => told(s[2], seconds), "number"],
  ["B against A", (s) => more(s[1], s[2], seconds), "number"], ["A held back by", (s) => s[3]], ["B held back by", (s) => s[4]],
], job.spans);
table("lost", [
  ["Lost to", (l) => l[0]], ["A", (l) => known(l[1], seconds), "number"], ["B", (l) => known(l[2], seconds), "number"],
  ["B against A", (l) => more(l[1], l[2], seconds), "number"],
], job.lost);
$("s-options").hidden = job.options.length === 0;
table("options", [["Option", (o) => o[0]], ["A", (o) => o[1] || dash, "text"], ["B", (o) => o[2] || dash, "text"]], job.options);
table("counters", [
  ["Counter", (c) => c[0]], ["A", (c) => told(c[1], count), "number"], ["B", (c) => told(c[2], count), "number"],
  ["B against A", (c) => more(c[1], c[2], count), "number"],
], job.counters);

// --- charts ---

const attemptsOf = job.jobs.map((one) => one.attempts.start.map((start, i) => ({
  start, end: one.attempts.end[i], phase: one.attempts.phase[i], outcome: outcomes[one.attempts.outcome[i]],
})));
// What runs in either job, so that both charts have the same colours and legends.
const usedPhases = job.phases.map((_, i) => i).filter((i) => attemptsOf.some((of) => of.some((a) => a.phase === i)));
const hasWaste = attemptsOf.some((of) => of.some(wasted));

// The most attempts that one of them runs at once: the height of both charts.
function mostRunning(of) {
  const steps = of.flatMap((a) => [[a.start, 1], [a.end, -1]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let now = 0, most = 0;
  for (const [, step] of steps) most = Math.max(most, (now += step));
  return most;
}
const height = Math.max(1, ...attemptsOf.map(mostRunning));

function drawRunning(at) {
  const shown = [...usedPhases, ...(hasWaste ? [job.phases.length] : [])];
  const find = () => {
    const {times, series} = running(attemptsOf[at], job.phases);
    return {times, series: shown.map((i) => series[i])};
  };
  stacked(`chart-running-${at}`, 160, shown.map((i) => job.phases[i] ?? "waste"),
    shown.map((i) => (i === job.phases.length ? colour("--waste") : phaseColour(i))),
    find, (v) => (Math.round(v * 100) / 100).toString(), {whole: true, y: () => [0, height * 1.05]});
}

// The phases of A and of B as two bars.
function drawSpans() {
  const bars = (u) => {
    const row = u.bbox.height / 2, [from, to] = view.map((s) => s * 1e3);
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    u.ctx.clip();
    job.jobs.forEach((one, at) => {
      for (const [phase, start, end] of one.spans) {
        if (end < from || start > to) continue;
        const left = u.valToPos(start / 1e3, "x", true), right = u.valToPos(end / 1e3, "x", true);
        u.ctx.fillStyle = phaseColour(phase);
        u.ctx.fillRect(left, u.bbox.top + at * row + 3, Math.max(right - left - 1, 1), row - 6);
      }
    });
    u.ctx.restore();
  };
  const [across, up] = axes((v) => (v > 1 ? "A" : "B"));
  const rows = {...up, splits: () => [0.5, 1.5], grid: {show: false}, ticks: {show: false}};
  chart("chart-spans", 110, [{label: "phases", show: false}], [[0, end_s], [0, 2]], String, {
    axes: [across, rows], y: () => [0, 2], legend: {show: false}, hooks: {draw: [bars]},
  });
  const shown = [...new Set(job.jobs.flatMap((one) => one.spans.map(([phase]) => phase)))];
  $("key").replaceChildren(...shown.map((phase) => {
    const item = element("span", job.phases[phase]), patch = element("i");
    patch.style.background = phaseColour(phase);
    item.prepend(patch);
    return item;
  }));
}

// A column of the samples of both jobs at the times of either: between two samples what lies between them.
function aligned(columns) {
  const times = [...new Set(job.jobs.flatMap((one) => one.samples.map((s) => s[0])))].sort((a, b) => a - b);
  const values = job.jobs.map(({samples}) => {
    let next = 0;
    return times.map((t) => {
      while (next < samples.length && samples[next][0] < t) next++;
      if (next === samples.length || (next === 0 && samples[0][0] > t)) return null;
      const value = (s) => columns.reduce((sum, column) => sum + s[column], 0);
      const after = samples[next], before = samples[Math.max(next - 1, 0)], between = after[0] - before[0];
      return between > 0 ? value(before) + ((value(after) - value(before)) * (t - before[0])) / between : value(after);
    });
  });
  return [times, ...values];
}

function drawSamples() {
  const cores = (v) => v.toFixed(2), rate = (v) => bytes(v) + "/s", short = (v) => String(Math.round(v * 100) / 100);
  const all = [["cpu", [1, 2], cores, short, false], ["memory", [6], bytes, bytes, true], ["reads", [9], rate, rate, true],
    ["writes", [10], rate, rate, true]];
  for (const [id, columns, show, tick, whole] of all) {
    const target = $(`chart-${id}`), data = aligned(columns);
    target.parentNode.hidden = data[0].length === 0;
    if (data[0].length === 0) continue;
    const lines = [line("A", "--c0", show), line("B", "--c1", show, {dash: [6, 3]})];
    chart(`chart-${id}`, 160, lines, data, tick, {whole});
  }
}

function draw() {
  for (const {plot} of charts) plot.destroy();
  charts.length = 0;
  drawSpans();
  for (const at of [0, 1]) {
    $(`chart-running-${at}`).parentNode.hidden = attemptsOf[at].length === 0;
    if (attemptsOf[at].length) drawRunning(at);
  }
  drawSamples();
  zoom(...view);
}

keepDrawn(draw);
