// The nodes of a cluster: what each did and used, which read runs of which, and charts of each. Of a job on one machine
// all of it is empty and not shown.

const nodeBox = $("nodes");
nodeBox.hidden = job.nodes.length === 0;

// The order of the columns is that of on_nodes.py.
table("node-totals", [
  ["Node", (n) => n[0] + (n[1] ? " (lost)" : "")], ["Attempts", (n) => count(n[2]), "number"],
  ["Wasted", (n) => (n[3] ? `${count(n[3])}, ${bytes(n[4])}` : ""), "number"], ["CPU", (n) => seconds(n[5]), "number"],
  ["Memory", (n) => bytes(n[6]), "number"], ["Device reads", (n) => bytes(n[7]), "number"],
  ["Device writes", (n) => bytes(n[8]), "number"], ["Own runs", (n) => bytes(n[9]), "number"],
  ["Received", (n) => bytes(n[10]), "number"], ["As files", (n) => bytes(n[11]), "number"],
  ["Sent", (n) => bytes(n[12]), "number"],
], job.node_totals);

// A row for each node that read, a column for each that keeps runs; the more bytes, the darker.
function drawReads() {
  const most = Math.max(1, ...job.reads.flat());
  table("reads", [
    ["Read by", (row) => job.nodes[row.by]],
    ...job.nodes.map((name, kept) => [name, (row) => known(row.of[kept], bytes), "number"]),
  ], job.reads.map((of, by) => ({by, of})));
  job.reads.forEach((of, by) => of.forEach((amount, kept) => {
    const cell = $("reads").tBodies[0].rows[by].cells[kept + 1];
    cell.style.background = `color-mix(in srgb, var(--c0) ${Math.round((amount / most) * 45)}%, transparent)`;
  }));
}
drawReads();

if (job.nodes.length) {
  const others = ". This is the machine that the job was begun on; nodes are below";
  for (const id of ["chart-cpu", "chart-memory", "chart-disk"]) {
    $(id).parentNode.querySelector("figcaption").append(others);
  }
  $("chart-lanes").parentNode.querySelector("figcaption").append(", by node");
  if (job.node_rates.length < job.nodes.length) {
    $("nodes-caption").textContent = `Charts of the ${job.node_rates.length} nodes that moved most, of ${count(job.nodes.length)}`;
  }
  job.node_rates.forEach(([name], at) => {
    const figure = element("figure"), charts = element("div", undefined, "pair");
    for (const what of ["cpu", "moved"]) {
      const target = element("div", undefined, "chart");
      target.id = `node-${at}-${what}`;
      charts.append(target);
    }
    figure.append(element("figcaption", `${name}: processors in use; devices, and runs of other nodes`), charts);
    $("node-charts").append(figure);
  });
}

function drawNodes() {
  job.node_rates.forEach(([, rows], at) => {
    const column = (i) => rows.map((row) => row[i]);
    const cores = (v) => v.toFixed(2), rate = (v) => bytes(v) + "/s";
    chart(`node-${at}-cpu`, 140, [line("processors", "--c0", cores, {fill: colour("--c0") + "33"})],
      [column(0), column(1)], (v) => String(Math.round(v * 100) / 100));
    chart(`node-${at}-moved`, 140, [
      line("device reads", "--c0", rate), line("device writes", "--c1", rate),
      line("runs received", "--c2", rate), line("runs sent", "--c3", rate), line("runs as files", "--c4", rate, {dash: [4, 3]}),
    ], [0, 3, 4, 5, 6, 7].map(column), rate, {whole: true});
  });
}
