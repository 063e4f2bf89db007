// The attempts: what the charts draw of them, and a table that is sorted, filtered, and shown a page at a time.

// The page has a column of numbers for each fact: a row of names for each of 100,000 attempts would be 20 MB.
const attempts = job.attempts.task.map((task, i) => {
  const a = job.attempts, took = a.took[i];
  return {
    task, attempt: a.attempt[i], phase: a.phase[i], start: a.start[i], outcome: outcomes[a.outcome[i]],
    end: took < 0 ? job.end_ms : a.start[i] + took, bytes: a.bytes[i], records: a.records[i],
    node: job.nodes.length ? job.node[i] : -1, input: job.input_heads[a.input_head[i]] + grouped(a.input_tail[i]), error: job.errors[i] || "",
  };
});
const nodeOf = (a) => job.nodes[a.node] || "";
const tookOf = (a) => a.end - a.start;

table("phases", [
  ["Phase", (p) => p.name], ["Attempts", (p) => count(p.n), "number"],
  ["Shortest", (p) => seconds(p.least / 1e3), "number"], ["Median", (p) => seconds(p.median / 1e3), "number"],
  ["Longest", (p) => seconds(p.most / 1e3), "number"],
], job.phases.map((name, phase) => {
  const spans = attempts.filter((a) => a.phase === phase).map(tookOf).sort((a, b) => a - b);
  return {name, n: spans.length, least: spans[0], median: spans[spans.length >> 1], most: spans[spans.length - 1]};
}).filter((p) => p.n > 0));

// --- the table of all ---

const PAGE_ROWS = 50;
// [title, cell, kind, what is sorted by]
const attemptColumns = [
  ["Task", (a) => count(a.task), "number", (a) => a.task],
  ["Attempt", (a) => count(a.attempt + 1), "number", (a) => a.attempt],
  ["Phase", (a) => job.phases[a.phase], "", (a) => a.phase],
  ["Node", nodeOf, "", (a) => a.node],
  ["Outcome", (a) => a.outcome, "", (a) => outcomes.indexOf(a.outcome)],
  ["Started", (a) => seconds(a.start / 1e3), "number", (a) => a.start],
  ["Took", (a) => seconds(tookOf(a) / 1e3), "number", tookOf],
  ["Bytes", (a) => known(a.bytes, bytes), "number", (a) => a.bytes],
  ["Records", (a) => (a.records < 0 ? "" : count(a.records)), "number", (a) => a.records],
  ["Works on", (a) => a.input, "text", null],
  ["Error", (a) => a.error, "long", null],
].filter(([title]) => (title !== "Error" || attempts.some((a) => a.error)) && (title !== "Node" || job.nodes.length));
const chosen = {rows: attempts, page: 0, column: null, down: false};

function choose() {
  const words = $("attempts-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const phase = $("attempts-phase").value, outcome = $("attempts-outcome").value;
  chosen.rows = attempts.filter((a) => {
    if ((phase && a.phase !== Number(phase)) || (outcome && a.outcome !== outcome)) return false;
    const text = `${a.task} ${nodeOf(a)} ${a.input} ${a.error}`.toLowerCase();
    return words.every((word) => (/^\d+$/.test(word) ? a.task === Number(word) : text.includes(word)));
  });
  if (chosen.column) {
    const by = chosen.column[3], sign = chosen.down ? -1 : 1;
    chosen.rows.sort((a, b) => sign * (by(a) - by(b)));
  }
  chosen.page = 0;
  showPage();
}

function showPage() {
  const {rows, page} = chosen, first = page * PAGE_ROWS, last = Math.min(first + PAGE_ROWS, rows.length);
  const body = $("attempts").tBodies[0];
  body.textContent = "";
  addRows(body, attemptColumns, rows.slice(first, last));
  $("attempts-count").textContent = rows.length
    ? `${count(first + 1)} to ${count(last)} of ${count(rows.length)}` : "no such attempts";
  $("attempts-before").disabled = page === 0;
  $("attempts-after").disabled = last === rows.length;
}

function sortBy(column, cell) {
  chosen.down = chosen.column === column && !chosen.down;
  chosen.column = column;
  for (const other of cell.parentNode.cells) other.removeAttribute("aria-sort");
  cell.setAttribute("aria-sort", chosen.down ? "descending" : "ascending");
  choose();
}

function addChoices(id, every, names, amounts) {
  const add = (text, value) => { $(id).append(new Option(text, value)); };
  add(every, "");
  for (const [value, name] of names) if (amounts(value)) add(`${name} (${count(amounts(value))})`, value);
}

$("attempts-box").hidden = attempts.length === 0;
addChoices("attempts-phase", "all phases", job.phases.map((name, i) => [String(i), name]),
  (phase) => attempts.reduce((n, a) => n + (a.phase === Number(phase)), 0));
addChoices("attempts-outcome", "all outcomes", outcomes.map((name) => [name, name]),
  (outcome) => attempts.reduce((n, a) => n + (a.outcome === outcome), 0));
const attemptHead = $("attempts").createTHead().insertRow();
$("attempts").createTBody();
for (const column of attemptColumns) {
  const cell = element("th", column[3] ? undefined : column[0], column[2]);
  cell.scope = "col";
  if (column[3]) {
    const button = element("button", column[0]);
    button.type = "button";
    button.addEventListener("click", () => sortBy(column, cell));
    cell.append(button);
  }
  attemptHead.append(cell);
}
for (const id of ["attempts-filter", "attempts-phase", "attempts-outcome"]) $(id).addEventListener("input", choose);
const turn = (by) => () => { chosen.page += by; showPage(); };
$("attempts-before").addEventListener("click", turn(-1));
$("attempts-after").addEventListener("click", turn(1));
choose();
