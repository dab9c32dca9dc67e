// Compilations as they happen, newest first. Eager ones are kept apart, so that they cannot push the others out.
const KEPT = 200, KEPT_ASIDE = 1000;
const feed = {};
resetFeed();

function resetFeed() {
  Object.assign(feed, {
    own: [], eager: [], eagerSeen: 0, seen: 0, dropped: 0, left: 0, primed: false, page: 0,
    points: [], // of the timeline, oldest first
    lookups: new Map(), // of the persistent cache, until their compilation comes
    programs: new Map(), // function -> its latest compilation whose FLOPs or memory are known
    unsaved: new Map(), // reason -> the latest compilation that was not stored for it
  });
}

// A lookup is told just before its compilation, with the same time.
const lookupKey = (event) => `${event.function} ${event.time}`;

function addLookups(answer) {
  for (const event of answer.events) if (event.event === "cache_lookup") aside(feed.lookups, lookupKey(event), event);
}

function aside(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > KEPT_ASIDE) map.delete(map.keys().next().value);
}

function addEvents(answer) {
  for (const event of answer.events) {
    if (event.event !== "compilation") continue;
    event.fresh = feed.primed;
    event.lookup = feed.lookups.get(lookupKey(event));
    notice(event);
    const list = event.eager ? feed.eager : feed.own;
    list.unshift(event);
    if (list.length > KEPT) list.pop();
  }
  feed.points.splice(0, feed.points.length - TIMELINE_KEPT);
  feed.lookups.clear();
  feed.dropped += answer.dropped || 0;
  feed.primed = true;
}

function notice(event) {
  if (event.flops != null || sum(event.memory)) aside(feed.programs, event.function, event);
  if (event.uncached_because) aside(feed.unsaved, event.uncached_because, event);
  feed.points.push(pointOf(event));
  feed.seen += 1;
  if (event.eager) feed.eagerSeen += 1;
}

// All that was recorded at once, however much.
function loadEvents(events) {
  events.sort((a, b) => a.sequence - b.sequence);
  for (const event of events) notice(event);
  events.reverse();
  feed.own = events.filter((event) => !event.eager);
  feed.eager = events.filter((event) => event.eager);
}

// What the list is about: with or without eager ones, of one cause, with the words that were asked for.
function listed() {
  const words = $("recent-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = $("eager").checked ? [...feed.own, ...feed.eager].sort((a, b) => b.sequence - a.sequence) : feed.own;
  if (!words.length && !timeline.cause) return all;
  const has = (event) => { const text = `${event.function} ${event.cause} ${spaced(event.cause)} ${event.reason} ${whereOf(event)} ${event.cache}`.toLowerCase(); return words.every((word) => text.includes(word)); };
  return all.filter((event) => (!timeline.cause || event.cause === timeline.cause) && (!words.length || has(event)));
}

function drawPager(found) {
  const pages = Math.max(1, Math.ceil(found / KEPT));
  feed.page = Math.min(feed.page, pages - 1);
  show($("recent-pager"), pages > 1);
  setText($("recent-part"), `${count(feed.page * KEPT + 1)} to ${count(Math.min(found, (feed.page + 1) * KEPT))} of ${count(found)}`);
  for (const id of ["recent-newest", "recent-newer"]) $(id).disabled = feed.page === 0;
  for (const id of ["recent-older", "recent-oldest"]) $(id).disabled = feed.page === pages - 1;
}

function turnPage(by) {
  feed.page = Math.max(0, feed.page + by);
  drawFeed(page.snap);
  $("recent-scroll").scrollTop = 0;
}

function drawFeed(snap) {
  const withEager = $("eager").checked;
  const found = listed();
  if (page.recorded) drawPager(found.length);
  const shown = found.slice(feed.page * KEPT, (feed.page + 1) * KEPT);
  const told = findingsBySequence(snap), cures = new Set();
  keyed($("recent"), shown, eventKey, makeEvent, (row, event) => {
    markEvent(row, told.get(event.sequence) || []);
    if (!row.cure) return;
    // Many compilations of one function have the same cure, but for a size: the newest tells it.
    const cure = `${event.eager ? EAGER : event.function} ${row.cure.textContent.replace(/\d+ fits both/, "")}`;
    show(row.cure, !cures.has(cure));
    cures.add(cure);
  });
  setText($("recent-count"), count(feed.seen - (withEager ? 0 : feed.eagerSeen)));
  setText($("eager-count"), withEager ? `${count(feed.eagerSeen)} shown` : `${count(feed.eagerSeen)} hidden`);
  const total = feed.seen - (withEager ? 0 : feed.eagerSeen);
  const notes = [!page.recorded && !timeline.cause && total > shown.length && `the newest ${shown.length} of ${count(total)}`, timeline.cause && `only ${spaced(timeline.cause)}`,
    feed.left && `the log has ${plural(feed.left, "earlier compilation")} that this report left out`, feed.dropped && `${plural(feed.dropped, "earlier event")} no longer in memory; an event log keeps all of them`].filter(Boolean);
  show($("recent-more"), notes.length > 0);
  setText($("recent-more"), notes.join(" · "));
  show($("recent-empty"), !shown.length);
  const filtered = feed.own.length > 0;
  redraw($("recent-empty"), [feed.eagerSeen, snap && snap.observer.installed, filtered], () => filtered
    ? [h("strong", { text: "Nothing fits" }), h("p", { text: "No compilation in the list matches. Use a shorter filter, or tick “show eager” above." })]
    : feed.eagerSeen
    ? [h("strong", { text: "Only eager operations so far" }), h("p", { text: "Nothing jitted by the program has compiled. Tick “show eager” above to see what JAX compiled on its own." })]
    : [h("strong", { text: "No compilation yet" }), h("p", { text: "Each one appears here as it happens, with its cause, its cost and what to do." })]);
}

const eventKey = (event) => `${event.pid} ${event.sequence} ${event.time}`;

function makeEvent(event) {
  const at = Date.parse(event.time) / 1000;
  const total = sum(event.phases);
  const phases = PHASES.filter((phase) => event.phases[phase] != null);
  const bar = h("div", { class: "bar mini", title: phases.map((phase) => `${spaced(phase)} ${seconds(event.phases[phase])}`).join("\n") });
  stacked(bar, phases.map((phase) => [phase, event.phases[phase], `phase-${phase}`]), total || 1);
  const cache = { hit: "loaded from cache", miss: "cache miss", disabled: "cache off" }[event.cache] || event.cache;
  const marks = h("span", { class: "marks" });
  const meta = [
    h("span", { class: `badge ${event.cache}`, text: cache }),
    event.eager && h("span", { class: "badge", text: "eager" }),
    event.transform && h("span", { class: "badge", title: "derived by this transformation", text: event.transform }),
    marks,
    event.call_site && siteOf(event.call_site),
    event.library_site && insideOf(event.library_site),
  ].filter(Boolean);
  const reason = unnamed(event.reason, event.function);
  const [change, told] = changeAndCure(reason);
  const cure = told ? h("span", {}, ...sentence(told)) : null;
  const drawn = event.changes.length > 0 && change.includes(" -> "); // by the table below
  const node = h("li", { "data-sequence": event.sequence, "data-eager": String(event.eager), tabindex: "-1" },
    h("div", { class: "row" }, h("time", { class: "num", datetime: event.time, title: moment(at), text: when(at) }), nameNode(event.function), bar, h("span", { class: "num cost", text: seconds(total) })),
    h("div", { class: "meta" }, chip(event.cause), ...meta),
    reason && (cure || !drawn) ? h("p", { class: "reason", title: cure && reason }, ...(drawn ? [] : sentence(change)), cure) : null,
    event.changes.length ? changesOf(event) : null,
    missedOf(event.lookup),
    moreOf(event));
  if (event.fresh) {
    node.classList.add("fresh");
    setTimeout(() => node.classList.remove("fresh"), 6000);
  }
  return { node, marks, cure };
}

function siteOf(site) {
  return h("span", { class: "site" }, h("code", { title: `called at ${site}`, text: site.split("/").slice(-2).join("/") }), copier(site, "call site"));
}

// The innermost line of a library between that call and JAX: what the library's owner needs.
function insideOf(site) {
  return h("span", { class: "site" }, h("code", { title: `in ${site}`, text: `in ${site}` }), copier(site, "library line"));
}

const whereOf = (event) => [event.call_site, event.library_site].filter(Boolean).join(" ");

// What an earlier process had compiled and this one could not find again: the part of the key that differs.
function missedOf(lookup) {
  if (!lookup || !(lookup.reason || (lookup.differs || []).length)) return null;
  return h("p", { class: "missed" }, h("strong", { text: "Cached before, and missed" }),
    ...(lookup.differs || []).map((part) => h("span", { class: "badge", title: "part of the cache's key that differs", text: spaced(part) })),
    ...(lookup.reason ? [" ", ...sentence(lookup.reason)] : []));
}

// Program and cache: the figures on the line itself, the rest when it is opened.
function moreOf(event) {
  const held = programBytes(event.memory);
  const brief = [event.flops != null && flops(event.flops), held != null && bytes(held),
    event.cache === "miss" && event.uncached_because && `not stored: ${spaced(event.uncached_because)}`].filter(Boolean);
  const more = h("details", { class: "more-facts" }, h("summary", { text: brief.join(" · ") || "Details" }));
  more.addEventListener("toggle", () => more.append(factsOf(event)), { once: true });
  return more;
}

function factsOf(event) {
  const line = (title, ...content) => [h("dt", { text: title }), h("dd", {}, ...content)];
  const { lookup } = event;
  const stored = event.cache === "miss" && event.uncached_because && (event.uncached_detail || `Not stored: ${spaced(event.uncached_because)}.`);
  const loaded = lookup && lookup.seconds != null && `read in ${seconds(lookup.seconds)}${lookup.saved_seconds == null ? "" : `, saved ${fraction(lookup.saved_seconds)}`}`;
  return h("dl", {},
    ...line("Phases", PHASES.filter((phase) => event.phases[phase] != null).map((phase) => `${spaced(phase)} ${seconds(event.phases[phase])}`).join(", ") || DASH),
    ...programLines(event),
    ...(stored ? line("Not stored", ...sentence(stored)) : []),
    ...(loaded ? line("From cache", loaded) : []),
    ...(lookup && lookup.key ? line("Cache key", h("code", { text: lookup.key }), copier(lookup.key, "cache key")) : []),
    ...(event.call_site ? line("Called at", h("code", { text: event.call_site })) : []),
    ...(event.library_site ? line("In library", h("code", { text: event.library_site })) : []),
    ...(event.fingerprint ? line("Fingerprint", h("code", { text: event.fingerprint })) : []),
    ...line("Event", `number ${count(event.sequence)}, ${moment(Date.parse(event.time) / 1000)}`));
}

// What the compiler says of a program: alias is memory of arguments that outputs use again, so it counts once.
function programBytes(memory) {
  const sections = MEMORY_SECTIONS.filter((section) => memory[section] != null);
  return sections.length ? sections.reduce((all, section) => all + (section === "alias" ? -1 : 1) * memory[section], 0) : null;
}

const SECTION_NAMES = { argument: "arguments", output: "outputs", temp: "temporaries", alias: "outputs that reuse arguments", code: "code" };
function programLines({ flops: operations, memory }) {
  const held = programBytes(memory);
  const sections = MEMORY_SECTIONS.filter((section) => memory[section]).map((section) => `${SECTION_NAMES[section]} ${section === "alias" ? "−" : ""}${bytes(memory[section])}`);
  return [
    ...(operations == null ? [] : [h("dt", { text: "FLOPs" }), h("dd", { title: `${count(operations)} floating-point operations in one run, according to the compiler's analysis` }, `${flops(operations)} in one run`)]),
    ...(held == null ? [] : [h("dt", { text: "Memory" }), h("dd", { title: "on one device, according to the compiler's analysis" }, `${bytes(held)} a device`, h("small", { class: "quiet", text: sections.length ? ` ${sections.join(", ")}` : "" }))]),
  ];
}

// A button for each finding that the compilation belongs to.
function markEvent(row, findings) {
  redraw(row.marks, findings.map((each) => [each.id, each.finding]), () => findings.map((each) =>
    h("button", { type: "button", class: "badge part", title: "Show the finding that this belongs to", text: spaced(each.finding), onclick: () => goToFinding(each.id) })));
}

const findEvent = (sequence) => feed.own.find((event) => event.sequence === sequence) || feed.eager.find((event) => event.sequence === sequence);

function goToEvent(sequence) {
  const event = findEvent(sequence);
  if (!event) return;
  if (event.eager) $("eager").checked = true;
  if (!listed().includes(event)) { $("recent-filter").value = ""; if (timeline.cause) { timeline.cause = null; drawTimeline(page.snap); } }
  if (page.recorded) feed.page = Math.floor(listed().indexOf(event) / KEPT);
  drawFeed(page.snap);
  const row = $("recent").keyedRows.get(eventKey(event));
  if (row) reveal(row.node);
}
