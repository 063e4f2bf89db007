// What the page of a job says in words and tables.

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
table("left-out", [["Row", (row) => row, "text"]], job.left_out);
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
$("resumed-caption").textContent = job.resumed_ms.length
  ? `; red lines: its process was killed, and another resumed the job (at ${job.resumed_ms.map((t) => seconds(t / 1e3)).join(", ")})` : "";
