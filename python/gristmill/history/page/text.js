// What the page says in words and tables, from the JSON in it. All text comes in as text, never as markup.
// The scripts of the page are one: text.js, attempts.js, nodes.js, charts.js.
"use strict";
const job = JSON.parse(document.getElementById("data").textContent);
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
// Digits in groups, also of numbers that have more than a float can hold.
const grouped = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const known = (amount, show) => (amount > 0 ? show(amount) : "");

// --- elements ---

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function pairs(target, list) {
  for (const [name, value] of list) {
    const box = target.className === "figures" ? target.appendChild(element("div")) : target;
    box.append(element("dt", name), element("dd", value));
  }
}

// A long text is shown by its beginning, and whole when that is pressed.
function folded(text) {
  if (text.length <= 160) return text;
  const box = element("details");
  box.append(element("summary", text.slice(0, 120) + " \u2026"), text);
  return box;
}

// Columns are [title, cell of a row, kind]; the kind is "number", "text" or "long" (which may break anywhere), or none.
function cell(text, kind) {
  const made = element("td", undefined, kind);
  made.append(kind === "long" ? folded(text) : text);
  return made;
}
function addRows(body, columns, rows) {
  for (const row of rows) {
    const line = body.insertRow();
    for (const [, of, kind] of columns) line.append(cell(of(row), kind));
  }
}

// A table without rows is not shown.
function table(id, columns, rows) {
  const target = $(id);
  target.hidden = rows.length === 0;
  const box = element("div", undefined, id === "samples" ? "wide scroll" : "wide");
  target.replaceWith(box);
  box.append(target);
  const head = target.createTHead().insertRow();
  for (const [title, , kind] of columns) {
    const made = element("th", title, kind);
    made.scope = "col";
    head.append(made);
  }
  addRows(target.createTBody(), columns, rows);
}

// --- the job ---

const began = new Date(job.unix_ms).toLocaleString("sv", {timeZoneName: "short"});
$("title").textContent = job.name ? `${job.name}: ${job.command} ${job.job_id}` : `${job.command} ${job.job_id}`;
$("subtitle").textContent = `${job.state}, began ${began}, Gristmill ${job.program}`;
pairs($("facts"), job.facts);
pairs($("figures"), job.figures);
if (job.error) $("failure").append(element("p", job.error, "error"));
for (const [name, text] of job.details) $("failure").append(element("h3", name), element("pre", text));

table("limits", [
  ["Phase", (u) => u.name], ["Took", (u) => seconds(u.seconds), "number"], ["Held back by", (u) => u.limit],
  ["Processors busy", (u) => percent(u.busy), "number"], ["Taken by the host", (u) => percent(u.steal), "number"],
  ["Device reads", (u) => bytes(u.read_rate) + "/s", "number"],
  ["Device writes", (u) => bytes(u.write_rate) + "/s", "number"],
], job.uses);
const side = (amount) => (amount === null ? "\u2013" : count(amount));
table("counters", [
  ["Counter", (c) => c[0]], ["Map", (c) => side(c[1]), "number"], ["Reduce", (c) => side(c[2]), "number"],
  ["Total", (c) => side(c[3]), "number"],
], job.counters);
table("options", [["Option", (o) => o[0]], ["Value", (o) => o[1], "text"]], job.options);
const planned = (amount) => (amount === null ? "\u2013" : bytes(amount));
$("reason").textContent = job.plan.reason || "";
table("stages", [
  ["Stage", (s) => s.name], ["Tasks", (s) => count(s.tasks), "number"], ["Reads", (s) => planned(s.reads), "number"],
  ["Writes", (s) => planned(s.writes), "number"],
], job.plan.stages || []);
table("reservations", [["For", (m) => m.name], ["Bytes", (m) => bytes(m.bytes), "number"]], job.plan.reservations || []);
table("samples", [
  ["Time", (s) => seconds(s[0]), "number"], ["Processors, job", (s) => s[1].toFixed(2), "number"],
  ["Memory", (s) => bytes(s[6]), "number"], ["Reads", (s) => bytes(s[9]) + "/s", "number"],
  ["Writes", (s) => bytes(s[10]) + "/s", "number"],
], job.samples);
