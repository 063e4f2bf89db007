// How pages say amounts, and make tables of the JSON in them. All text comes in as text, never as markup.
// The scripts of a page are one: of a job tell.js, text.js, attempts.js, plot.js, nodes.js, charts.js; of two jobs
// tell.js, plot.js, pair.js.
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

// --- attempts ---

const outcomes = ["running", "succeeded", "failed", "killed"];
const wasted = (a) => a.outcome === "failed" || a.outcome === "killed";
