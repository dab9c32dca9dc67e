// Every compilation over time: as high as it was long, in the colour of its cause; what else happened; the time it all took.
const TIMELINE_KEPT = 4000, SHORTEST = 1e-3, NEAR = 14, FLAG = 12;
const DECADES = [[1e-3, "1 ms"], [1e-2, "10 ms"], [0.1, "100 ms"], [1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [36000, "10 h"]];
const timeline = { cause: null, items: [], at: null, seen: "", picture: null };

const pointOf = (event) => ({ time: Date.parse(event.time) / 1000, seconds: sum(event.phases), cause: CAUSES.includes(event.cause) ? event.cause : "unknown",
  fn: event.function, eager: event.eager, cache: event.cache, sequence: event.sequence });

// What marks the run beside its compilations, from events of any kind: [kind, what, more].
function markText(event) {
  const firstLine = (text) => (text || "").split("\n", 1)[0];
  switch (event.event) {
    case "manifest": return ["start", "jaxobs starts", [event.program, event.versions && event.versions.jax && `jax ${event.versions.jax}`].filter(Boolean).join(", ")];
    case "exit": return ["exit", endedText(event), event.report ? `Last minutes: ${event.report}` : ""];
    case "error": return ["error", event.error, [firstLine(event.message), event.call_site].filter(Boolean).join(", at ")];
    case "nonfinite": return ["error", `${event.name}${event.path || ""} is ${event.what}`, [event.step != null && `call ${event.step} of watch`, event.call_site].filter(Boolean).join(", at ")];
    case "action": return ["action", `${event.name} capture ${event.result}`, event.detail || event.path || ""];
    case "out_of_memory": return ["oom", `out of memory: ${event.function}`, [event.wanted_bytes && `${bytes(event.wanted_bytes)} wanted`, firstLine(event.message)].filter(Boolean).join("; ")];
    case "finding": return ["finding", `finding: ${spaced(event.finding)}`, event.summary];
    default: return null;
  }
}

function endedText(exit) {
  const code = exit.code == null ? "" : `, exit code ${exit.code}`;
  if (exit.reason === "normal") return `ended normally${code}`;
  return `ended by ${exit.reason === "signal" ? "signal" : "an exception"}${exit.detail ? `: ${exit.detail}` : ""}${code}`;
}

// Of a finding that was told again and again the first telling marks the run.
function marksOf(snap) {
  const events = page.recorded ? page.marks
    : [...(snap.last_out_of_memory ? [{ event: "out_of_memory", ...snap.last_out_of_memory }] : []), ...snap.findings.map((each) => ({ event: "finding", ...each, time: each.since || each.time }))];
  const told = new Set();
  const marks = [];
  for (const event of events) {
    const text = event.event === "finding" && told.has(event.id) ? null : markText(event);
    if (event.event === "finding") told.add(event.id);
    if (text) marks.push({ mark: true, time: typeof event.time === "number" ? event.time : Date.parse(event.time) / 1000, kind: text[0], title: text[1], text: text[2], finding: event.event === "finding" ? event.id : null });
  }
  return marks;
}

function drawTimeline(snap) {
  const svg = $("timeline");
  const marks = marksOf(snap);
  const shown = timeline.cause ? feed.points.filter((point) => point.cause === timeline.cause) : feed.points;
  const every = [...feed.points, ...marks];
  const times = every.map((each) => each.time);
  const to = Math.max(snap.time, ...extremes(times).slice(1)), from = Math.min(snap.process.started, to - 1, ...extremes(times).slice(0, 1));
  show($("timeline-panel"), every.length > 0);
  if (!every.length) return;
  const width = Math.max(svg.clientWidth, 200), height = Math.max(svg.clientHeight, 120);
  const drawn = timeline.picture;
  const moved = drawn ? ((to - drawn.to) / (drawn.to - drawn.from)) * width : 1;
  const seen = JSON.stringify([feed.points.length, feed.points.length && feed.points[feed.points.length - 1].sequence, marks.length, width, height, timeline.cause, from]);
  drawCauseButtons(snap);
  if (seen === timeline.seen && moved < 1) return;
  timeline.seen = seen;
  timeline.items = [...shown, ...marks].sort((a, b) => a.time - b.time);
  paintTimeline(svg, shown, marks, { from, to, width, height });
}

// The least and the greatest, of lists too long to be spread into arguments.
function extremes(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  return values.length ? [low, high] : [];
}

function paintTimeline(svg, points, marks, { from, to, width, height }) {
  const eager = points.some((point) => point.eager);
  const lane = eager ? 22 : 0;
  const box = { left: 54, right: width - 76, top: 24, bottom: height - 20 - lane };
  const longest = Math.max(1, ...(extremes(points.map((point) => point.seconds))));
  const x = (time) => box.left + ((time - from) / (to - from)) * (box.right - box.left);
  const tall = (value) => Math.max(3, (Math.log(Math.max(value, SHORTEST) / SHORTEST) / Math.log(longest / SHORTEST)) * (box.bottom - box.top));
  const y = (value) => box.bottom - tall(value);
  timeline.picture = { box, x, y, from, to, lane, width, height };
  const parts = [];
  for (const [value, label] of DECADES.filter(([value]) => value <= longest * 1.001))
    parts.push(s("line", { class: "grid", x1: box.left, x2: box.right, y1: value === SHORTEST ? box.bottom : y(value), y2: value === SHORTEST ? box.bottom : y(value) }),
      s("text", { class: "tick", x: box.left - 8, y: value === SHORTEST ? box.bottom : y(value) + 3.5, "text-anchor": "end" }, label));
  parts.push(...timeAxis({ from, to, box, x, below: lane }));
  const [area, ...line] = cumulated(points, x, box, to);
  parts.push(area || "", ...stems(points.filter((point) => !point.eager), x, y, box), ...line);
  if (eager) parts.push(...eagerLane(points.filter((point) => point.eager), x, box, lane));
  spread(marks, x, box);
  parts.push(...marks.map((mark) => flagOf(mark, x, box, lane)));
  timeline.cross = s("g", { class: "cross" });
  svg.replaceChildren(...parts, timeline.cross);
  const total = points.reduce((all, point) => all + point.seconds, 0);
  svg.setAttribute("aria-label", `${plural(points.length, "compilation")} over ${span(to - from)}, ${seconds(total)} in total; the longest took ${seconds(points.length ? Math.max(...extremes(points.map((point) => point.seconds))) : 0)}. Use the arrow keys to read them one by one; Enter shows one in the list.`);
  pointTimeline(timeline.at, false);
}

// A column of two pixels shows the longest of each cause, the longer ones behind.
function stems(points, x, y, box) {
  const columns = new Map();
  for (const point of points) {
    const key = `${x(point.time) >> 1} ${point.cause}`;
    const known = columns.get(key);
    if (!known || known.seconds < point.seconds) columns.set(key, point);
  }
  return [...columns.values()].sort((a, b) => b.seconds - a.seconds).map((point) => {
    const end = x(point.time), start = Math.max(box.left, Math.min(x(point.time - point.seconds), end - 3)), top = y(point.seconds);
    const stem = s("rect", { class: "stem", x: start.toFixed(1), width: (end - start).toFixed(1), y: top.toFixed(1), height: (box.bottom - top).toFixed(1), "data-cause": point.cause, "data-sequence": point.sequence });
    stem.style.fill = `var(--cause-${point.cause})`;
    return stem;
  });
}

function eagerLane(points, x, box, lane) {
  const columns = new Map();
  for (const point of points) {
    const key = x(point.time) >> 1;
    columns.set(key, [point, (columns.has(key) ? columns.get(key)[1] : 0) + 1]);
  }
  const most = Math.max(...[...columns.values()].map(([, n]) => n));
  return [s("text", { class: "tick", x: box.left - 8, y: box.bottom + lane - 3, "text-anchor": "end" }, "eager"),
    ...[...columns].map(([column, [, n]]) => {
      const tall = 4 + 8 * Math.sqrt(n / most);
      return s("rect", { class: "eager", x: column * 2, width: 2, y: (box.bottom + lane - 2 - tall).toFixed(1), height: tall.toFixed(1) });
    })];
}

// Seconds that all compilations until then took together, up to the total at the right.
function cumulated(points, x, box, to) {
  const total = points.reduce((all, point) => all + point.seconds, 0);
  if (!total) return [];
  const y = (value) => box.bottom - (value / total) * (box.bottom - box.top);
  let all = 0, last = -Infinity, end = "", line = `M${box.left} ${box.bottom}`;
  for (const point of [...points].sort((a, b) => a.time - b.time)) {
    const at = x(point.time), before = all;
    all += point.seconds;
    if (at - last >= 0.5) { line += `${end}H${at.toFixed(1)}V${y(before).toFixed(1)}`; last = at; }
    end = `V${y(all).toFixed(1)}`;
  }
  line += `${end}H${x(to).toFixed(1)}`;
  return [s("path", { class: "total-area", d: `${line}V${box.bottom}H${box.left}Z` }), s("path", { class: "total", d: line }),
    s("text", { class: "tick total-text", x: box.right + 6, y: box.top + 4 }, seconds(total)), s("text", { class: "tick", x: box.right + 6, y: box.top + 17 }, "total")];
}

const FLAGS = { start: "M0 0h8v2H2v8H0z", exit: "M-3 0h6v6h-6z", error: "M0-1l5 9H-5z", oom: "M0-1l5 9H-5z", action: "M0 0a3.6 3.6 0 1 1-.01 0z", finding: "M0-1l4.5 4.5L0 8l-4.5-4.5z" };
// Flags side by side where they would cover each other; their lines stay where they belong.
function spread(marks, x, box) {
  for (const mark of marks) mark.at = x(mark.time);
  if (marks.length * FLAG > (box.right - box.left) / 2) return;
  const sorted = [...marks].sort((a, b) => a.at - b.at);
  sorted.forEach((mark, n) => { if (n) mark.at = Math.max(mark.at, sorted[n - 1].at + FLAG); });
  let limit = box.right;
  for (const mark of sorted.reverse()) { mark.at = Math.min(mark.at, limit); limit = mark.at - FLAG; }
}

function flagOf(mark, x, box, lane) {
  const at = x(mark.time);
  return s("g", { class: `flag-mark ${mark.kind}`, "data-mark": mark.kind },
    s("line", { x1: at, x2: at, y1: 15, y2: box.bottom + lane }), s("path", { d: FLAGS[mark.kind], transform: `translate(${mark.at.toFixed(1)} 5)` }));
}

// A button for each cause, with how often: pressed, picture and list show that one alone.
function drawCauseButtons(snap) {
  const totals = causeTotals(snap.functions);
  const causes = Object.entries(totals).sort((a, b) => (a[0] === "first_call") - (b[0] === "first_call") || b[1] - a[1]);
  if (timeline.cause && !totals[timeline.cause]) timeline.cause = null;
  redraw($("timeline-causes"), [causes, timeline.cause], () => causes.map(([cause, n]) => {
    const pressed = timeline.cause === cause;
    const button = h("button", { type: "button", class: "cause", "aria-pressed": String(pressed), "data-of": cause, title: pressed ? "Show all causes" : `Show only ${spaced(cause)}`, onclick: () => chooseCause(pressed ? null : cause) }, chip(cause, n));
    return h("li", {}, button);
  }));
  setText($("timeline-count"), count(sum(totals)));
}

function chooseCause(cause) {
  timeline.cause = cause;
  timeline.at = null;
  feed.page = 0;
  drawTimeline(page.snap);
  drawFeed(page.snap);
  const again = cause && $("timeline-causes").querySelector(`[data-of="${cause}"]`);
  if (again) again.focus();
}

function nearestItem(px, py) {
  const { x, y, box, lane } = timeline.picture;
  const flags = py < box.top - 2;
  let best = null, least = NEAR;
  for (const item of timeline.items) {
    if (Boolean(item.mark) !== flags) continue;
    const dx = Math.abs((item.mark ? item.at : x(item.time)) - px);
    if (dx > NEAR) continue;
    // Within its stem a compilation is near, wherever on it one points.
    const top = item.mark ? 0 : item.eager ? box.bottom + 2 : y(item.seconds);
    const off = item.mark ? 0 : item.eager ? (py > box.bottom ? 0 : 6) : py > box.bottom && lane ? 9 : Math.min(4, Math.max(0, top - py) / 12) + Math.min(2, Math.max(0, py - top) / 90);
    if (dx + off < least) { least = dx + off; best = item; }
  }
  return best;
}

function pointTimeline(item, told, clientX, clientY) {
  timeline.at = item;
  const tip = $("tip");
  if (!item || !timeline.picture) {
    if (timeline.cross) timeline.cross.replaceChildren();
    if (told) show(tip, false);
    return;
  }
  const { x, y, box, lane } = timeline.picture;
  const at = x(item.time);
  timeline.cross.replaceChildren(s("line", { x1: at, x2: at, y1: box.top - 8, y2: box.bottom + lane }),
    ...(item.mark ? [] : [s("circle", { cx: at, cy: item.eager ? box.bottom + lane - 8 : y(item.seconds), r: 3 })]));
  if (!told) return;
  const event = item.mark ? null : findEvent(item.sequence);
  tip.replaceChildren(...(item.mark ? tipOfMark(item) : tipOfCompilation(item, event)));
  tip.classList.add("wide");
  show(tip, true);
  const area = $("timeline").getBoundingClientRect(), size = tip.getBoundingClientRect();
  const left = clientX ?? area.left + at, above = clientY ?? area.top + box.top;
  tip.style.left = `${Math.max(4, Math.min(left + 14, window.innerWidth - size.width - 8))}px`;
  tip.style.top = `${above - size.height - 12 >= 4 ? above - size.height - 12 : Math.min(above + 18, window.innerHeight - size.height - 4)}px`;
}

const tipOfMark = (mark) => [h("strong", { text: mark.title }), h("em", { class: "num", text: moment(mark.time) }), mark.text ? h("p", {}, ...sentence(mark.text)) : ""];

function tipOfCompilation(point, event) {
  return [nameNode(point.fn, "strong"),
    h("span", {}, h("em", { class: "num", text: `${moment(point.time)} · #${count(point.sequence)}` }), h("b", { class: "num", text: seconds(point.seconds) })),
    h("span", { class: "meta" }, chip(point.cause), h("em", { text: { hit: "loaded from cache", miss: "cache miss", disabled: "cache off" }[point.cache] || point.cache })),
    event && event.reason ? h("p", {}, ...sentence(event.reason.replace(`\`${event.function}\`: `, ""))) : ""];
}

function openItem(item) {
  if (!item) return;
  if (!item.mark) { timeline.at = item; show($("tip"), false); goToEvent(item.sequence); }
  else if (item.finding) { show($("tip"), false); goToFinding(item.finding); }
}

function startTimeline() {
  const svg = $("timeline");
  const under = (event) => { const area = svg.getBoundingClientRect(); return nearestItem(event.clientX - area.left, event.clientY - area.top); };
  svg.addEventListener("pointermove", (event) => { const item = under(event); svg.classList.toggle("pointing", Boolean(item)); pointTimeline(item, true, event.clientX, event.clientY); });
  svg.addEventListener("pointerleave", () => pointTimeline(null, true));
  svg.addEventListener("blur", () => pointTimeline(null, true));
  svg.addEventListener("click", (event) => openItem(under(event)));
  svg.addEventListener("keydown", (event) => {
    const { items } = timeline;
    if (event.key === "Escape") return pointTimeline(null, true);
    if (event.key === "Enter") return openItem(timeline.at);
    const now = items.indexOf(timeline.at);
    const next = { ArrowLeft: now < 0 ? items.length - 1 : now - 1, ArrowRight: now < 0 ? items.length - 1 : now + 1, Home: 0, End: items.length - 1 }[event.key];
    if (next == null || !items.length) return;
    event.preventDefault();
    pointTimeline(items[Math.max(0, Math.min(items.length - 1, next))], true);
    setText($("said"), $("tip").textContent);
  });
}
