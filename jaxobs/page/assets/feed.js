// Compilations as they happen, newest first. Eager ones are kept apart, so that they cannot push the others out.
const KEPT = 200;
const feed = { own: [], eager: [], eagerSeen: 0, seen: 0, dropped: 0, primed: false };

function resetFeed() {
  Object.assign(feed, { own: [], eager: [], eagerSeen: 0, seen: 0, dropped: 0, primed: false });
}

function addEvents(answer) {
  for (const event of answer.events) {
    if (event.event !== "compilation") continue;
    event.fresh = feed.primed;
    const list = event.eager ? feed.eager : feed.own;
    list.unshift(event);
    if (list.length > KEPT) list.pop();
    feed.seen += 1;
    if (event.eager) feed.eagerSeen += 1;
  }
  feed.dropped += answer.dropped || 0;
  feed.primed = true;
}

function drawFeed(snap) {
  const withEager = $("eager").checked;
  const shown = (withEager ? [...feed.own, ...feed.eager].sort((a, b) => b.sequence - a.sequence) : feed.own).slice(0, KEPT);
  keyed($("recent"), shown, (event) => `${event.pid} ${event.sequence} ${event.time}`, makeEvent);
  setText($("recent-count"), count(feed.seen - (withEager ? 0 : feed.eagerSeen)));
  setText($("eager-count"), withEager ? `${count(feed.eagerSeen)} shown` : `${count(feed.eagerSeen)} hidden`);
  const total = feed.seen - (withEager ? 0 : feed.eagerSeen);
  const notes = [total > shown.length && `the newest ${shown.length} of ${count(total)}`, feed.dropped && `${plural(feed.dropped, "earlier event")} no longer in memory; an event log keeps all`].filter(Boolean);
  show($("recent-more"), notes.length > 0);
  setText($("recent-more"), notes.join(" · "));
  show($("recent-empty"), !shown.length);
  redraw($("recent-empty"), [feed.eagerSeen, snap && snap.observer.installed], () => feed.eagerSeen
    ? [h("strong", { text: "Only eager operations so far" }), h("p", { text: "Nothing jitted by the program has compiled. Tick “show eager” above to see what JAX compiled by itself." })]
    : [h("strong", { text: "No compilation yet" }), h("p", { text: "Each one appears here as it happens, with its cause, its cost and what to do." })]);
}

function makeEvent(event) {
  const at = Date.parse(event.time) / 1000;
  const total = sum(event.phases);
  const phases = PHASES.filter((phase) => event.phases[phase] != null);
  const bar = h("div", { class: "bar mini", title: phases.map((phase) => `${spaced(phase)} ${seconds(event.phases[phase])}`).join("\n") });
  stacked(bar, phases.map((phase) => [phase, event.phases[phase], `phase-${phase}`]), total || 1);
  const cache = { hit: "loaded from cache", miss: "cache miss", disabled: "cache off" }[event.cache] || event.cache;
  const meta = [
    h("span", { class: `badge ${event.cache}`, text: cache }),
    event.uncached_because && h("span", { class: "quiet", text: `not stored: ${spaced(event.uncached_because)}` }),
    event.eager && h("span", { class: "badge", text: "eager" }),
    event.transform && h("span", { class: "badge", title: "derived by this transformation", text: event.transform }),
    event.call_site && h("code", { class: "site", title: `called at ${event.call_site}${event.fingerprint ? `, program ${event.fingerprint}` : ""}`, text: event.call_site.split("/").slice(-2).join("/") }),
  ].filter(Boolean);
  const node = h("li", { "data-sequence": event.sequence, "data-eager": String(event.eager) },
    h("div", { class: "row" }, h("time", { class: "num", datetime: event.time, title: moment(at), text: when(at) }), nameNode(event.function), bar, h("span", { class: "num cost", text: seconds(total) })),
    h("div", { class: "meta" }, chip(event.cause), ...meta),
    event.reason ? h("p", { class: "reason" }, ...sentence(event.reason)) : null,
    event.changes.length ? changesOf(event.changes) : null);
  if (event.fresh) {
    node.classList.add("fresh");
    setTimeout(() => node.classList.remove("fresh"), 6000);
  }
  return { node };
}

function changesOf(changes) {
  const lines = changes.map((change) => h("li", { title: `${spaced(change.what)} of ${change.path || "the call"}` },
    h("span", { class: "path", text: change.path || spaced(change.what) }), h("del", { text: change.before }), h("span", { class: "arrow", text: "→", "aria-label": "is now" }), h("ins", { text: change.after })));
  const first = h("ul", { class: "changes mono" }, ...lines.slice(0, 3));
  if (lines.length <= 3) return first;
  return h("div", {}, first, h("details", { class: "rest-changes" }, h("summary", { text: `${plural(lines.length - 3, "more change")}` }), h("ul", { class: "changes mono" }, ...lines.slice(3))));
}
