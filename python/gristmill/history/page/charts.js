// The charts of a job: what ran, in lanes too, what it used, and the sizes of its output.

// The attempts of each lane, by time: each in the first lane that is free.
function lanesOf(some) {
  const found = [];
  for (const a of some) {
    let lane = found.findIndex((of) => of[of.length - 1].end <= a.start);
    if (lane < 0) lane = found.push([]) - 1;
    found[lane].push(a);
  }
  return found;
}

// The lanes of all nodes, one node after another, with a row for the name of each; of one machine its lanes.
function lanes() {
  if (!job.nodes.length) return lanesOf(attempts);
  const of = job.nodes.map(() => []);
  for (const a of attempts) if (of[a.node]) of[a.node].push(a);
  return of.flatMap((some, node) => [Object.assign([], {title: job.nodes[node]}), ...lanesOf(some)]);
}

// The attempt of a lane that ran at a time, or near it where they are shorter than a pixel.
function attemptAt(lane, ms, near_ms) {
  let low = 0, high = lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane[middle].end + near_ms < ms) low = middle + 1; else high = middle;
  }
  return low < lane.length && lane[low].start - near_ms <= ms ? lane[low] : null;
}

function showTip(tip, a, left, top, width) {
  const facts = [
    ["Task", `${count(a.task)}, attempt ${count(a.attempt + 1)}`], ["Phase", job.phases[a.phase]], ["Node", nodeOf(a)],
    ["Works on", a.input], ["Bytes", known(a.bytes, bytes)], ["Records", a.records < 0 ? "" : count(a.records)],
    ["Started", seconds(a.start / 1e3)], ["Took", seconds(tookOf(a) / 1e3)], ["Outcome", a.outcome],
    ["Error", a.error.slice(0, 300)],
  ];
  tip.replaceChildren(...facts.filter(([, value]) => value)
    .flatMap(([name, value]) => [element("span", name), element("b", value)]));
  tip.hidden = false;
  tip.style.top = `${top + 12}px`;
  tip.style.left = `${Math.max(Math.min(left + 12, width - tip.offsetWidth), 0)}px`;
}

function drawLanes() {
  const found = lanes(), rows = Math.max(found.length, 1);
  const colours = job.phases.map((_, i) => phaseColour(i)), waste = colour("--waste");
  const bars = (u) => {
    const height = u.bbox.height / rows, [from, to] = view.map((s) => s * 1e3);
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    u.ctx.clip();
    [u.ctx.textAlign, u.ctx.textBaseline] = ["left", "middle"];
    const size = Math.min(12, height / devicePixelRatio);
    u.ctx.font = `${size * devicePixelRatio}px system-ui`;
    found.forEach((lane, row) => {
      const middle = u.bbox.top + (row + 0.5) * height;
      u.ctx.fillStyle = colour("--ink");
      if (lane.title && size >= 7) u.ctx.fillText(lane.title, u.bbox.left + 4, middle);
    });
    found.forEach((lane, row) => lane.forEach((a) => {
      if (a.end < from || a.start > to) return;
      const left = u.valToPos(a.start / 1e3, "x", true), right = u.valToPos(a.end / 1e3, "x", true);
      u.ctx.fillStyle = wasted(a) ? waste : colours[a.phase];
      u.ctx.fillRect(left, u.bbox.top + row * height + 1, Math.max(right - left - 1, 1), Math.max(height - 2, 1));
    }));
    u.ctx.restore();
  };
  const tip = element("div", undefined, "tip");
  const point = (u) => (event) => {
    const box = u.over.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const lane = found[Math.floor((y / box.height) * rows)];
    const near_ms = ((view[1] - view[0]) * 1e3 * 2) / box.width;
    const a = lane && attemptAt(lane, u.posToVal(x, "x") * 1e3, near_ms);
    if (a) showTip(tip, a, x + u.over.offsetLeft, y + u.over.offsetTop, u.root.offsetWidth);
    else tip.hidden = true;
  };
  const ready = (u) => {
    tip.hidden = true;
    u.root.querySelector(".u-wrap").append(tip);
    for (const event of ["pointermove", "pointerdown"]) u.over.addEventListener(event, point(u));
    u.over.addEventListener("pointerleave", () => { tip.hidden = true; });
  };
  const steps = [[0, end_s], [0, rows]];
  const most = job.nodes.length ? 1600 : 480;
  chart("chart-lanes", Math.min(60 + 22 * rows, most), [{label: "lanes", show: false}], steps,
    (v) => (Number.isInteger(v) && !job.nodes.length ? String(v) : ""), {
      whole: true, y: () => [0, rows], legend: {show: false}, hooks: {draw: [bars], ready: [ready]},
    });
}

// --- all of them ---

// The axis ends a little above the memory in use: what is reserved may be many times that, and would flatten it.
function memoryRange(u) {
  const most = [1, 2, 3].map((index) => (u.series[index].show ? highest(u.data, index, view) : 0));
  const near = most[0] > 0 ? most.filter((bytes) => bytes <= 2 * most[0]) : most;
  return fromZero(u, 0, Math.max(...near));
}

function drawSamples() {
  for (const id of ["chart-cpu", "chart-memory", "chart-disk"]) $(id).parentNode.hidden = job.samples.length === 0;
  if (job.samples.length === 0) return;
  const column = (i) => job.samples.map((s) => s[i]);
  const times = column(0), cores = (v) => v.toFixed(2), rate = (v) => bytes(v) + "/s";
  const shade = {fill: colour("--c0") + "33"};
  chart("chart-cpu", 180, [
    line("job, user", "--c0", cores, shade), line("job, kernel", "--c1", cores),
    line("machine, all", "--soft", cores, {dash: [4, 3]}), line("waiting for devices", "--c4", cores),
    line("taken by the host", "--waste", cores),
  ], [times, ...[1, 2, 3, 4, 5].map(column)], (v) => String(Math.round(v * 100) / 100));
  chart("chart-memory", 180, [
    line("anonymous", "--c0", bytes, shade), line("mapped files", "--c2", bytes),
    line("reserved", "--c1", bytes, {dash: [4, 3]}),
  ], [times, ...[6, 7, 8].map(column)], bytes, {whole: true, y: memoryRange});
  chart("chart-disk", 180, [
    line("device reads", "--c0", rate), line("device writes", "--c1", rate),
    line("network in", "--c2", rate), line("network out", "--c3", rate),
  ], [times, ...[9, 10, 11, 12].map(column)], rate, {whole: true});
}

function drawParts() {
  $("parts").hidden = job.parts.length === 0;
  $("parts-caption").textContent = job.parts_caption;
  for (const unit of ["bytes", "records"]) {
    const target = $(`chart-parts-${unit}`), drawn = job.parts.filter((part) => part[1] === unit);
    target.hidden = drawn.length === 0;
    if (drawn.length) drawPartsOf(target, drawn, unit === "bytes" ? bytes : count);
  }
}

function drawPartsOf(target, drawn, show) {
  const [across, up] = axes(show, true), tasks = drawn[0][2].length;
  const bars = uPlot.paths.bars({size: [0.8, 60]});
  const series = drawn.map(([name], i) => line(name, "--c" + i, show, {
    ...(i ? {dash: [6, 3], points: {show: tasks < 50}} : {fill: colour("--c0"), paths: bars}),
    value: (u, v) => show(v == null ? highest(u.data, i + 1, [0, Infinity]) : v),
  }));
  const plot = new uPlot({
    width: target.clientWidth, height: 180, axes: [{...across, incrs: WHOLE, values: (_, ticks) => ticks.map(count)}, up],
    scales: {x: {time: false, range: () => [-0.5, tasks - 0.5]}, y: {range: fromZero}},
    series: [{label: "", value: (_, v) => (v == null ? "highest:" : `task ${count(v)}`)}, ...series],
  }, [drawn[0][2].map((_, i) => i), ...drawn.map((part) => part[2])], target);
  charts.push({plot, target, timed: false});
}

function draw() {
  for (const {plot} of charts) plot.destroy();
  charts.length = 0;
  const used = running(attempts, job.phases).series.map((values, i) => [values, i]).filter(([values]) => values.some((v) => v > 0));
  const names = [...job.phases, "waste"], indices = used.map(([, i]) => i);
  const find = () => {
    const {times, series} = running(attempts, job.phases);
    return {times, series: indices.map((i) => series[i])};
  };
  stacked("chart-running", 200, indices.map((i) => names[i]),
    indices.map((i) => (i === job.phases.length ? colour("--waste") : phaseColour(i))),
    find, (v) => (Math.round(v * 100) / 100).toString(), {whole: true});
  drawLanes();
  drawSamples();
  drawNodes();
  drawParts();
  zoom(...view);
}

keepDrawn(draw);
