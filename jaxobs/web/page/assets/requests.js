// Served requests, a row for each route: the steady state and the cold starts apart; below, what made the latest ones cold.
const COLD_SHOWN = 5;

function drawRequests(snap) {
  const routes = snap.routes || [];
  show($("requests"), routes.length > 0);
  if (!routes.length) return;
  const busy = (each) => (each.per_second || 0) * 1e9 + ended(each);
  setText($("requests-count"), plural(routes.length, "route"));
  setText($("requests-flight"), flight(snap).join(" · "));
  keyed($("requests-rows"), [...routes].sort((a, b) => busy(b) - busy(a) || (a.route < b.route ? -1 : 1)), (each) => each.route, makeRoute, updateRoute);
  const generating = routes.filter((each) => each.output_tokens || each.first_token || Object.keys(each.finish_reasons || {}).length);
  show($("generation"), generating.length > 0);
  keyed($("generation-rows"), generating.sort((a, b) => b.output_tokens - a.output_tokens || (a.route < b.route ? -1 : 1)), (each) => each.route, makeGeneration, updateGeneration);
  const latest = routes.flatMap((each) => each.latest_cold.map((told) => ({ ...told, route: each.route }))).sort((a, b) => b.time - a.time).slice(0, COLD_SHOWN);
  show($("requests-cold"), latest.length > 0);
  redraw($("requests-cold-list"), latest, () => latest.map(coldRequest));
}

// Of all engines together: requests that wait, and the fullest cache.
function flight(snap) {
  const engines = snap.engines || [], waiting = engines.filter((each) => each.waiting != null), caches = engines.filter((each) => each.kv_cache_ratio != null);
  return [
    ...(snap.requests_in_flight ? [`${count(snap.requests_in_flight)} in flight`] : []),
    ...(waiting.length ? [`${count(sum(Object.fromEntries(waiting.map((each) => [each.engine, each.waiting]))))} waiting`] : []),
    ...(caches.length ? [`KV cache ${percent(Math.max(...caches.map((each) => each.kv_cache_ratio)))}`] : []),
  ];
}

const ended = (route, cold = null, outcome = null) => Object.entries(route.requests).filter(([each]) => cold == null || each === cold)
  .reduce((all, [, by]) => all + (outcome == null ? sum(by) : by[outcome] || 0), 0);

function makeRoute(route) {
  const cells = {};
  const cell = (name, label) => (cells[name] = h("td", { class: "num", "data-label": label }));
  const node = h("tr", { "data-route": route.route }, h("th", { scope: "row" }, h("span", { class: "mono", text: route.route, title: route.route })),
    cell("rate", "per second"), cell("total", "requests"), cell("errors", "errors"), cell("p50", "warm p50"), cell("p99", "warm p99"), cell("cold", "cold"), cell("coldP50", "cold p50"), cell("coldLongest", "cold longest"), cell("waited", "waited"), cell("queue", "queue"), cell("fill", "batch fill"));
  return { node, cells };
}

function updateRoute({ node, cells }, route) {
  const all = ended(route), errors = ended(route, null, "error"), cold = ended(route, "true"), known = all - ended(route, "unknown");
  const latencyOf = (latency, name) => (latency ? seconds(latency[name]) : DASH);
  const share = (n, of) => (n ? `${count(n)} · ${percent(n / of)}` : "0");
  setText(cells.rate, route.per_second == null ? DASH : route.per_second < 9.95 ? route.per_second.toFixed(1) : count(Math.round(route.per_second)));
  setText(cells.total, count(all));
  setText(cells.errors, share(errors, all));
  cells.errors.classList.toggle("bad", errors > 0);
  setTitle(cells.errors, `client errors: ${count(ended(route, null, "client_error"))}, cancelled: ${count(ended(route, null, "cancelled"))}`);
  setText(cells.p50, latencyOf(route.warm, "p50"));
  setText(cells.p99, latencyOf(route.warm, "p99"));
  setTitle(cells.p99, route.warm ? `longest ${seconds(route.warm.longest)}, of the latest ${count(route.warm.count)}` : "");
  setText(cells.cold, known ? share(cold, known) : DASH);
  setTitle(cells.cold, known ? "" : "jaxobs is not installed in the process, and sees no compilations");
  setText(cells.coldP50, latencyOf(route.cold, "p50"));
  setText(cells.coldLongest, latencyOf(route.cold, "longest"));
  setText(cells.waited, route.waited ? count(route.waited) : DASH);
  setTitle(cells.waited, route.waited ? `delayed by a compilation elsewhere, ${seconds(route.waited_seconds / route.waited)} on average` : "");
  setText(cells.queue, route.queued ? seconds(route.queue_seconds / route.queued) : DASH);
  setText(cells.fill, route.batch_size ? percent(route.batch_used / route.batch_size) : DASH);
  node.classList.toggle("down", errors > 0 && errors === all);
}

function makeGeneration(route) {
  const cells = {};
  const cell = (name, label, kind = "num") => (cells[name] = h("td", { class: kind, "data-label": label }));
  const node = h("tr", { "data-route": route.route }, h("th", { scope: "row" }, h("span", { class: "mono", text: route.route, title: route.route })),
    cell("first50", "first token p50"), cell("first99", "first token p99"), cell("each50", "per token p50"), cell("each99", "per token p99"), cell("rate", "tokens a second"), cell("input", "tokens in"), cell("output", "tokens out"), cell("reasons", "ended by", ""));
  return { node, cells };
}

function updateGeneration({ cells }, route) {
  for (const [name, latency] of [["first", route.first_token], ["each", route.output_token]]) for (const rank of ["50", "99"]) setText(cells[name + rank], latency ? seconds(latency[`p${rank}`]) : DASH);
  setText(cells.rate, route.output_tokens_per_second == null ? DASH : count(Math.round(route.output_tokens_per_second)));
  setText(cells.input, count(route.input_tokens));
  setText(cells.output, count(route.output_tokens));
  const reasons = Object.entries(route.finish_reasons || {}).sort((a, b) => b[1] - a[1]);
  setText(cells.reasons, reasons.length ? reasons.map(([reason, n]) => `${spaced(reason)} ${count(n)}`).join(" · ") : DASH);
}

// When, which route, how long; then each compilation in it with its cause; what changed stands with the compilation.
function coldRequest(told) {
  const more = told.compilations - told.compiled.length;
  return h("li", {},
    h("p", {}, h("span", { class: "num quiet", text: when(told.time) }), h("strong", { class: "mono", text: told.route }), h("span", { class: "num", text: seconds(told.seconds) }), told.outcome === "ok" ? null : h("span", { class: "badge lost", text: spaced(told.outcome) })),
    ...told.compiled.map((each) => h("p", { class: "why", title: each.reason }, chip(each.cause), nameNode(each.function),
      h("span", { class: "num", text: `${seconds(each.seconds)}${each.cache === "hit" ? " from the cache" : ""}` }))),
    ...(more > 0 ? [h("p", { class: "why quiet", text: `and ${plural(more, "more compilation")}` })] : []));
}
