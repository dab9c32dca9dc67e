// The persistent cache: what lies on disk, who found what in it, and what was not stored and why.
const cacheOn = (cache) => Boolean(cache.enabled && (cache.directory || page.recorded)); // a log does not tell the directory

const CACHED = 50; // functions in its table

const asked = (fn) => (fn.cache.hit || 0) + (fn.cache.miss || 0) + (fn.cache.disabled || 0);

function drawCache(snap) {
  const { cache } = snap;
  const on = cacheOn(cache);
  show($("cache-panel"), on);
  if (!on) return;
  setText($("cache-directory"), cache.directory || "");
  drawCacheFacts(snap);
  drawUnsaved(cache);
  const worst = (fn) => (fn.cache.miss || 0) * 1e9 + (fn.cache.hit || 0);
  const found = snap.functions.filter((fn) => (fn.cache.hit || 0) + (fn.cache.miss || 0) > 0).sort((a, b) => worst(b) - worst(a) || (a.name < b.name ? -1 : 1));
  keyed($("cache-functions"), found.slice(0, CACHED), (fn) => fn.name, makeCached, updateCached);
  show($("cache-rest"), found.length > CACHED);
  setText($("cache-rest"), `and ${plural(found.length - CACHED, "more function")} that asked it, with fewer misses`);
  show($("cache-functions").parentElement.parentElement, found.length > 0);
}

function drawCacheFacts({ cache, functions }) {
  const total = (result) => functions.reduce((all, fn) => all + (fn.cache[result] || 0), 0);
  const grown = cache.grown_bytes;
  const told = (value, text) => (value == null ? null : text);
  const facts = [
    ["Entries", told(cache.entries, count(cache.entries))],
    ["Size", told(cache.bytes, bytes(cache.bytes))],
    ["Growth", told(grown, grown === 0 ? "none since first seen" : `${grown < 0 ? "−" : "+"}${bytes(Math.abs(grown))} since first seen`)],
    ["Requests", `${plural(total("hit"), "hit")}, ${plural(total("miss"), "miss", "misses")}, ${count(total("disabled"))} disabled`],
    ["Saved", fraction(cache.saved_seconds)],
    ["Disk", cache.bytes == null && cache.entries == null && !page.recorded ? "unknown: the directory is not visible from here, or has not been read yet" : null],
  ].filter(([, value]) => value != null);
  redraw($("cache-facts"), facts, () => facts.map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { class: "num", text: value }))));
}

function drawUnsaved({ unsaved }) {
  const reasons = Object.entries(unsaved).filter(([, n]) => n).sort((a, b) => b[1] - a[1]).map(([reason, n]) => {
    const latest = feed.unsaved.get(reason);
    return [reason, n, latest ? [latest.uncached_detail || "", latest.function, latest.sequence, Boolean(findEvent(latest.sequence))] : null];
  });
  show($("cache-unsaved"), reasons.length > 0);
  redraw($("cache-unsaved"), reasons, () => [h("h3", { text: "Not stored" }), ...reasons.map(([reason, n, latest]) => h("p", {},
    h("strong", { class: "num", text: `${count(n)} ${spaced(reason)}` }),
    ...(latest ? [h("span", { class: "quiet", text: "latest " }), nameNode(latest[1]),
      latest[3] ? h("a", { class: "num", href: `#compilation-${latest[2]}`, title: "Show this compilation", text: `#${latest[2]}`, onclick: (event) => { event.preventDefault(); goToEvent(latest[2]); } }) : null,
      latest[0] ? h("span", { class: "detail-text" }, ...sentence(latest[0])) : null] : [])))]);
}

function makeCached(fn) {
  const cells = ["hit", "miss", "disabled"].map((result) => h("td", { class: `num ${result}` }));
  const bar = h("div", { class: "bar" });
  return { node: h("tr", {}, h("th", { scope: "row" }, nameNode(fn.name)), ...cells, h("td", { class: "share" }, bar)), cells, bar };
}

function updateCached(row, fn) {
  ["hit", "miss", "disabled"].forEach((result, n) => setText(row.cells[n], fn.cache[result] ? brief(fn.cache[result]) : DASH));
  stacked(row.bar, [["hit", fn.cache.hit || 0, "good"], ["miss", fn.cache.miss || 0, "muted"]], asked(fn) || 1);
  setTitle(row.bar, `${percent((fn.cache.hit || 0) / Math.max((fn.cache.hit || 0) + (fn.cache.miss || 0), 1))} hits`);
}
