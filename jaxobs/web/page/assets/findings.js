// Patterns over time, at the top: what is wrong, what to do, what it cost, and the compilations that show it.
const DRAWN = ["sizes", "buckets", "padding"]; // told by the picture
const FEW = 3; // findings shown before one asks for the others
let allFindings = false;

// In the order of the verdict; what is over comes last.
const ofInput = (finding) => finding.data.input != null;
const counted = (finding) => (finding.finding.endsWith("_leak") ? `grew in ${plural(finding.count, "sample")}` : ofInput(finding) ? plural(finding.count, "batch", "batches")
  : finding.sequences.length > 0 && plural(finding.count, "compilation"));
function byCost(snap) {
  const place = new Map([...entriesOf(snap).keys()].map((id, n) => [id, n]));
  const of = (finding) => place.get(finding.id) ?? place.size;
  return [...snap.findings].sort((a, b) => (a.ended != null) - (b.ended != null) || of(a) - of(b) || b.seconds - a.seconds || b.count - a.count || (a.id < b.id ? -1 : 1));
}

function findingsBySequence(snap) {
  const found = new Map();
  for (const finding of (snap && snap.findings) || [])
    for (const sequence of finding.sequences) found.set(sequence, [...(found.get(sequence) || []), finding]);
  return found;
}

function drawFindings(snap) {
  const findings = byCost(snap);
  const entries = entriesOf(snap);
  const shown = allFindings ? findings : findings.slice(0, FEW);
  show($("findings"), findings.length > 0);
  const standing = findings.filter((finding) => finding.ended == null).length;
  const over = findings.length - standing;
  setText($("findings-count"), over ? `${count(standing)}, ${count(over)} over` : count(standing));
  $("findings").classList.toggle("quieted", !standing);
  tellFindings(findings.slice(0, standing));
  keyed($("findings-list"), shown, (finding) => finding.id, makeFinding, (row, finding) => updateFinding(row, finding, entries));
  show($("findings-more"), findings.length > FEW);
  goToAddress();
  setText($("findings-more"), allFindings ? "show fewer" : `show ${count(findings.length - FEW)} more`);
  $("findings-more").setAttribute("aria-expanded", String(allFindings));
}

// A screen reader hears of a finding when it comes or goes, not whenever its figures move.
function tellFindings(standing) {
  redraw($("findings-status"), standing.map((finding) => finding.id).sort(), () => [standing.length ? `${plural(standing.length, "finding")}. ${standing[0].summary}` : ""]);
}

function makeFinding(finding) {
  const row = { figures: h("summary", { class: "figures num" }), summary: h("p", { class: "summary" }), advice: h("p", { class: "advice" }),
    picture: h("div", { class: "picture" }), body: h("div", { class: "evidence" }) };
  row.node = h("li", { "data-finding": finding.id, "data-kind": finding.finding, tabindex: "-1" },
    h("div", { class: "about" },
      h("h3", {}, h("span", { class: "kind", text: spaced(finding.finding) }), finding.function === "<unknown>" && finding.subject ? null : nameNode(finding.function),
        finding.subject && finding.subject !== finding.function ? h("span", { class: "subject mono", title: finding.subject, text: finding.subject }) : null),
      row.summary, row.advice, h("details", {}, row.figures, row.body), h("p", { class: "share" }, symptomOf(finding.finding), ...shareOf(finding))),
    row.picture);
  return row;
}

// The seconds of a finding, and how many of these its advice would have saved, as in the verdict.
function lostTime(finding) {
  const [all, saves] = [seconds(finding.seconds), seconds(finding.saves_seconds ?? finding.seconds)];
  return all === saves ? `${all} ${ofInput(finding) ? "waited" : "lost"}` : `${all}, ${saves} of it lost`;
}

function updateFinding(row, finding, entries) {
  const entry = entries.get(finding.id);
  if (entry) row.node.dataset.severity = entry.severity; else delete row.node.dataset.severity;
  const cause = entry && entry.caused_by && page.snap.findings.find((each) => each.id === entry.caused_by);
  const over = finding.ended != null;
  row.node.classList.toggle("over", over);
  const told = [over && `over since ${when(finding.ended)}`, finding.count > 0 && counted(finding), finding.seconds > 0 && lostTime(finding),
    finding.bytes && bytes(finding.bytes), placeOf(finding.where), cause && `caused by ${spaced(cause.finding)}`,
    finding.since > 0 && `${over ? "from" : "since"} ${when(finding.since)}`, "evidence"].filter(Boolean);
  redraw(row.figures, told, () => told.flatMap((text, n) => [n ? " · " : "", h("span", { text })]));
  setTitle(row.figures, finding.since > 0 ? `${moment(finding.since)} to ${moment(finding.time)}` : "");
  redraw(row.summary, finding.summary, () => sentence(finding.summary));
  redraw(row.advice, finding.advice, () => (finding.advice ? [h("strong", { text: "Do" }), ...sentence(finding.advice)] : []));
  const above = [...entries.keys()][0] === finding.id && entry.title === finding.summary && entry.do === finding.advice
    && verdictOf(page.snap).headline.startsWith(entry.title); // the verdict says it
  show(row.summary, !above);
  show(row.advice, !above && Boolean(finding.advice));
  redraw(row.picture, finding.data, () => [sizesPicture(finding)].filter(Boolean));
  const drawn = row.picture.childElementCount > 0;
  show(row.picture, drawn);
  const kept = finding.sequences.map((sequence) => [sequence, Boolean(findEvent(sequence))]);
  const figures = scalars(finding.data).filter(([name]) => !(drawn && DRAWN.includes(name)));
  const trace = traceOf(finding);
  redraw(row.body, [finding.evidence, kept, finding.data, trace], () => [
    finding.evidence.length ? h("ul", {}, ...finding.evidence.map((text) => h("li", {}, ...sentence(text)))) : null,
    kept.length ? h("p", { class: "links" }, h("span", { text: "Compilations " }), ...kept.map(([sequence, there]) => (there
      ? h("a", { class: "num", href: `#compilation-${sequence}`, title: "Show this compilation", text: `#${sequence}`, onclick: (event) => { event.preventDefault(); goToEvent(sequence); } })
      : h("span", { class: "num quiet", title: "No longer kept on this page; an event log keeps all of them", text: `#${sequence}` })))) : null,
    leavesOf(finding.data),
    figures.length ? h("dl", {}, ...figures.flatMap(([name, text]) => [h("dt", { text: spaced(name) }), h("dd", { class: "num", text })])) : null,
    trace ? h("p", { class: "share" }, "A trace of that time: ", h("span", { class: "site" }, h("code", { title: trace, text: trace.split("/").slice(-2).join("/") }), copier(`jaxobs profile ${trace}`, "command"))) : null,
  ].filter(Boolean));
}

// The folder of the latest trace that was taken while the finding lasted, for `jaxobs profile` or `xprof --logdir`.
function traceOf({ since, ended }) {
  const during = (time) => time >= since && (ended == null || time <= ended);
  const taken = actions.filter((each) => each.name === "profile" && each.path && during(epoch(each.time)));
  return taken.length ? taken[taken.length - 1].path : null;
}

// The figures of a finding that are texts or numbers, or a few of them: what needs no picture.
function scalars(data) {
  const figure = (value, name) => (/(^|_)bytes/.test(name) ? bytes(value) : /(^|_)seconds$/.test(name) ? seconds(value) : Number.isInteger(value) ? count(value) : value.toPrecision(3));
  const text = (value, name = "") => (typeof value === "number" ? figure(value, name) : typeof value === "string" && value ? value : null);
  const title = (name) => (/^\w+$/.test(name) ? spaced(name) : name); // a line of code stays as it is
  const texts = (value, of) => (Array.isArray(value) ? value.map((each) => text(each))
    : value && typeof value === "object" ? Object.entries(value).map(([name, each]) => (text(each) == null ? null : `${title(name)} ${text(each)}`)) : [text(value, of)]);
  return Object.entries(data).map(([name, value]) => [name, texts(value, name)])
    .filter(([, list]) => list.length > 0 && list.length <= 16 && list.every((each) => each != null)).map(([name, list]) => [name, list.join(", ")]);
}

// Leaves that differ, where a finding lists them, as the table that a compilation has.
function leavesOf({ leaves }) {
  const told = (Array.isArray(leaves) ? leaves : []).filter((each) => each && [each.path, each.before, each.after].every((text) => typeof text === "string"));
  return told.length ? changesTable(told.map((each) => ({ ...each, what: "" })), false) : null;
}

function goToFinding(id) {
  if (!allFindings && byCost(page.snap).findIndex((each) => each.id === id) >= FEW) { allFindings = true; drawFindings(page.snap); }
  const row = $("findings-list").keyedRows.get(id);
  if (row) reveal(row.node);
}
