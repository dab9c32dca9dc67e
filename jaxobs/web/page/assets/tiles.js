// The headline figures: what a glance at the page must tell.
const STUCK_AFTER = 60; // seconds until an open compilation is called out
const FULL = [0.9, 0.97]; // shares of the limit at which memory turns amber and red
const fullness = (ratio) => (ratio >= FULL[1] ? "bad" : ratio >= FULL[0] ? "warn" : "");

function causeTotals(functions) {
  const totals = {};
  for (const fn of functions)
    for (const [cause, byCache] of Object.entries(fn.compilations)) totals[cause] = (totals[cause] || 0) + sum(byCache);
  return totals;
}

const compiled = (fn) => Object.values(fn.compilations).reduce((total, byCache) => total + sum(byCache), 0);
const recompiled = (fn) => compiled(fn) - sum(fn.compilations.first_call || {});
const spent = (fn) => sum(fn.phase_seconds);

function phaseTotals(snap) {
  const totals = {};
  for (const phase of PHASES)
    totals[phase] = snap.phases[phase] ? snap.phases[phase].sum
      : snap.functions.reduce((total, fn) => total + (fn.phase_seconds[phase] || 0), 0);
  return totals;
}

// The line under a figure: texts, or [text, colour] with a swatch that explains the bar above.
function pieces(node, texts) {
  const wanted = texts.filter(Boolean);
  redraw(node, wanted, () => wanted.map((each) => {
    if (typeof each === "string") return h("span", { text: each });
    const mark = h("i", { "aria-hidden": "true" });
    mark.style.background = `var(--${each[1]})`;
    return h("span", {}, mark, each[0]);
  }));
}

const drawRate = (node, rate) => redraw(node, rate, () => [rate == null ? DASH : rate < 1e6 ? perSecond(rate) : brief(rate), rate == null ? "" : h("small", { text: " per second" })]);

// The loop that went on last stands for the training; the others are in the panel.
const lastLoop = (snap) => (snap.loops || []).reduce((best, each) => (best && (best.ended || 0) >= (each.ended || 0) ? best : each), null);

function tileSteps(snap) {
  const loop = lastLoop(snap);
  show($("tile-steps"), loop != null);
  if (!loop) return;
  setText($("tile-steps-title"), `Steps of ${splitName(loop.name)[1]}`);
  setTitle($("tile-steps-title"), loop.name);
  drawRate($("tile-steps-rate"), loop.steps_per_second);
  pieces($("tile-steps-sub"), [loop.steps_counted !== false && plural(loop.steps, "step"), loop.p50_seconds != null ? `median ${seconds(loop.p50_seconds)}` : loop.mean_seconds != null && `mean ${seconds(loop.mean_seconds)}`,
    mfuOf(loop) && `MFU ${mfuOf(loop)}`, loop.slow && `${count(loop.slow)} slow`, loop.failed && `${count(loop.failed)} failed`]);
}

function tileRequests(snap) {
  const routes = snap.routes || [];
  show($("tile-requests"), routes.length > 0);
  if (!routes.length) return;
  const all = (of) => routes.reduce((total, each) => total + of(each), 0);
  const slowest = Math.max(...routes.map((each) => (each.warm ? each.warm.p99 : 0)));
  const errors = all((each) => ended(each, null, "error")), cold = all((each) => ended(each, "true"));
  const rate = routes.some((each) => each.per_second != null) ? all((each) => each.per_second || 0) : null;
  $("tile-requests").dataset.state = errors ? "warn" : rate ? "" : "off";
  drawRate($("tile-requests-rate"), rate);
  pieces($("tile-requests-sub"), [plural(all((each) => ended(each)), "request"), slowest > 0 && `warm p99 ${routes.length > 1 ? "up to " : ""}${seconds(slowest)}`, cold && `${count(cold)} cold`, errors && plural(errors, "error")]);
}

function tileCompilations(snap) {
  const causes = causeTotals(snap.functions);
  const total = sum(causes);
  const again = total - (causes.first_call || 0);
  const loaded = snap.functions.reduce((n, fn) => n + Object.values(fn.compilations).reduce((m, by) => m + (by.hit || 0), 0), 0);
  const eager = snap.functions.filter((fn) => fn.name === EAGER).reduce((n, fn) => n + compiled(fn), 0);
  setText($("compilations"), count(total));
  stacked($("compilations-bar"), CAUSES.map((cause) => [cause, causes[cause] || 0, `cause-${cause}`]), total || 1);
  setTitle($("compilations-bar"), CAUSES.filter((cause) => causes[cause]).map((cause) => `${spaced(cause)} ${count(causes[cause])}`).join(", "));
  pieces($("compilations-sub"), total
    ? [plural(again, "recompilation"), !snap.findings.length && "no findings", loaded && `${count(loaded)} loaded from cache`, eager && `${count(eager)} eager`]
    : ["no compilation yet"]);
}

function tileTime(snap) {
  const phases = phaseTotals(snap);
  const total = sum(phases);
  const uptime = Math.max(snap.time - snap.process.started, 0.001);
  setText($("time"), seconds(total));
  stacked($("time-bar"), PHASES.map((phase) => [phase, phases[phase], `phase-${phase}`]), total || 1);
  pieces($("time-sub"), [...PHASES.filter((phase) => phases[phase] > 0).map((phase) => [`${spaced(phase)} ${seconds(phases[phase])}`, `phase-${phase}`]),
    total === 0 ? "tracing, lowering, compiling, loading" : total < uptime && `${percent(total / uptime)} of uptime`]);
}

function tileCache(snap) {
  const results = {};
  for (const fn of snap.functions)
    for (const [result, n] of Object.entries(fn.cache)) results[result] = (results[result] || 0) + n;
  const { hit = 0, miss = 0 } = results;
  const on = cacheOn(snap.cache);
  // Off, it is a line among the facts of the process; a directory that is not used is a mistake to be seen.
  show($("tile-cache"), on || Boolean(snap.cache.directory));
  $("tile-cache").dataset.state = on ? "on" : "off";
  stacked($("cache-bar"), [["hit", hit, "good"], ["miss", miss, "muted"]], hit + miss || 1);
  setTitle($("tile-cache"), snap.cache.directory || "");
  if (!on) {
    setText($("cache"), "off");
    return redraw($("cache-sub"), "off", () => [h("span", {}, "A directory is set, but ", h("code", { text: "jax_enable_compilation_cache" }), " is false.")]);
  }
  setText($("cache"), hit + miss ? `${percent(hit / (hit + miss))} hits` : "no lookup yet");
  const unsaved = sum(snap.cache.unsaved);
  const reasons = Object.entries(snap.cache.unsaved).sort((a, b) => b[1] - a[1]).map(([reason, n]) => `${count(n)} ${spaced(reason)}`);
  pieces($("cache-sub"), [[plural(hit, "hit"), "good"], [plural(miss, "miss", "misses"), "muted"], snap.cache.saved_seconds > 0 && `saved ${fraction(snap.cache.saved_seconds)}`,
    unsaved && `${count(unsaved)} not stored (${reasons.join(", ")})`]);
}

// The device nearest to its limit; where no limit is told, the one that holds most.
function fullest(devices) {
  const weight = ({ memory: m }) => !m ? -1
    : m.in_use_bytes != null && m.limit_bytes ? 2 + m.in_use_bytes / m.limit_bytes
    : 1 - 1 / (2 + (m.in_use_bytes ?? m.live_array_bytes ?? 0));
  return devices.reduce((best, each) => (best && weight(best) >= weight(each) ? best : each), null);
}

// After the run what is left at its end says little: then the most that any sample saw stands beside it.
function mostHeld({ device }) {
  const most = page.recorded ? Math.max(0, ...(memories.get(device) || []).map(heldBy)) : 0;
  return most > 0 && `at most ${bytes(most)}`;
}

function tileMemory(snap) {
  const device = fullest(snap.devices);
  const memory = device && device.memory;
  const tile = $("tile-memory"), bar = $("memory-bar");
  tile.dataset.state = "";
  setText($("memory-title"), memory && memory.in_use_bytes == null ? "Memory of live arrays" : "Device memory");
  if (!memory) {
    setText($("memory"), DASH);
    stacked(bar, [], 1);
    return pieces($("memory-sub"), [device ? "no sample yet" : "JAX has not opened any devices yet; jaxobs does not open them"]);
  }
  const { in_use_bytes: used, limit_bytes: limit, peak_bytes: peak } = memory;
  const several = snap.devices.length > 1 ? `fullest of ${snap.devices.length}: ${device.device}` : device.device;
  if (used == null) {
    setText($("memory"), bytes(memory.live_array_bytes));
    stacked(bar, [], 1);
    return pieces($("memory-sub"), [several, memory.live_arrays != null && plural(memory.live_arrays, "array"), mostHeld(device)]);
  }
  const ratio = limit ? used / limit : 0;
  tile.dataset.state = fullness(ratio);
  setText($("memory"), bytes(used));
  stacked(bar, limit ? [["used", used, fullness(ratio) || "memory"], ["peak", Math.max(0, (peak || 0) - used), "memory-peak"]] : [], limit || 1);
  pieces($("memory-sub"), [several, limit && `${percent(ratio)} of ${bytes(limit)}`, peak != null && `peak ${bytes(peak)}`]);
}

function tileProgress(snap, now) {
  if (page.recorded) return tileEnd();
  const open = [...snap.in_progress].sort((a, b) => a.started - b.started);
  const oldest = open.length ? now - open[0].started : 0;
  $("tile-progress").dataset.state = oldest >= STUCK_AFTER ? "warn" : open.length ? "busy" : "off";
  setText($("progress"), open.length ? count(open.length) : "none");
  keyed($("progress-list"), open.slice(0, 3), (each) => `${each.function} ${each.phase} ${each.thread} ${each.started}`,
    (each) => {
      const elapsed = h("span", { class: "num" });
      return { elapsed, node: h("li", { title: `${each.function}: ${spaced(each.phase)} on thread ${each.thread}` },
        nameNode(each.function), h("span", { class: "phase", text: spaced(each.phase) }), elapsed) };
    },
    (row, each) => setText(row.elapsed, span(now - each.started)));
  const last = Math.max(0, ...snap.functions.map((fn) => fn.last_compiled || 0));
  pieces($("progress-sub"), open.length > 3 ? [`and ${open.length - 3} more`]
    : oldest >= STUCK_AFTER ? ["Running for over a minute. Large programs take that long; a stuck compilation looks the same."]
    : open.length ? [] : [last ? `last one ${ago(now - last)}` : "nothing has compiled yet"]);
}

function drawTiles(snap, now) {
  tileSteps(snap);
  tileRequests(snap);
  tileCompilations(snap);
  tileTime(snap);
  tileCache(snap);
  tileMemory(snap);
  tileProgress(snap, now);
}
