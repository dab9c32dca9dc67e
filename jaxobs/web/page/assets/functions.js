// The table of functions: one <tbody> each, kept by name, so that an update moves rows and rebuilds none.
const COLUMNS = [
  { id: "name", title: "Function", of: (fn) => fn.name.toLowerCase(), up: true },
  { id: "calls", title: "Calls", of: (fn) => fn.calls ?? -1, hint: "Calls through jaxobs.jit or jaxobs.instrument" },
  { id: "compilations", title: "Compiled", of: compiled, hint: "Executables produced by cache misses" },
  { id: "causes", title: "Causes", of: recompiled, hint: "Why it compiled; sorts by recompilations" },
  { id: "time", title: "Compile time", of: spent, hint: "Seconds of tracing, lowering, compiling and loading. A bar grows with the square root of its seconds, so that short ones stay legible." },
  { id: "program", title: "Program", of: (fn) => { const latest = programOf(fn); return latest ? (latest.flops ?? 0) : -1; }, hint: "Its latest program: floating-point operations in one run, and memory on one device, by the compiler's own analysis" },
  { id: "cache", title: "Cache", of: (fn) => (fn.cache.hit || 0) * 1e6 + (fn.cache.miss || 0), hint: "Requests to the persistent cache" },
];
const spanned = () => COLUMNS.length - (page.recorded ? 1 : 0); // a log does not tell calls
const sorting = { id: "time", up: false };
const opened = new Set();
const ROWS = 100; // of the table at once: more cost a second each time that they change places
let rowsShown = ROWS;
const APART = {
  [EAGER]: "Operations that JAX compiled one by one, outside any jitted function.",
  [OTHER]: "Functions beyond the limit, counted together.",
};

function buildColumns(changed) {
  $("columns").append(...COLUMNS.map((column) => {
    const button = h("button", { type: "button", title: column.hint, onclick: () => {
      if (sorting.id === column.id) sorting.up = !sorting.up;
      else { sorting.id = column.id; sorting.up = Boolean(column.up); }
      changed();
    } }, column.title);
    return h("th", { role: "columnheader", scope: "col", "data-column": column.id }, button);
  }));
  $("phase-legend").append(...PHASES.map((phase) => swatch(spaced(phase), `phase-${phase}`)));
}

function swatch(text, colour, shape = "block") {
  const mark = h("i", { "aria-hidden": "true", "data-shape": shape });
  mark.style.setProperty("--c", `var(--${colour})`);
  return h("li", {}, mark, text);
}

function sorted(functions) {
  const { of } = COLUMNS.find((column) => column.id === sorting.id);
  const sign = sorting.up ? 1 : -1;
  const apart = (fn) => [OTHER, EAGER].indexOf(fn.name);
  return [...functions].sort((a, b) => {
    const x = of(a), y = of(b);
    return apart(a) - apart(b) || (x < y ? -sign : x > y ? sign : a.name < b.name ? -1 : 1);
  });
}

function matches(fn, words) {
  const text = `${fn.name} ${Object.keys(fn.compilations).join(" ")} ${Object.keys(fn.compilations).map(spaced).join(" ")}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function makeFunction(fn) {
  const id = `fn-${(makeFunction.made = (makeFunction.made || 0) + 1)}`;
  const toggle = h("button", { type: "button", class: "toggle", "aria-expanded": "false", "aria-controls": id },
    h("i", { class: "chevron", "aria-hidden": "true" }), nameNode(fn.name));
  const reason = h("td", { colspan: spanned(), role: "cell" });
  const cell = (kind, ...children) => h("td", { role: "cell", class: kind, "data-label": COLUMNS.find((each) => each.id === kind.split(" ")[0]).title }, ...children);
  const bar = h("div", { class: "bar" }), total = h("span", { class: "num total" });
  const row = { fn, toggle, reason, bar, total, id, calls: cell("calls num"), program: cell("program num"), compilations: cell("compilations num"), causes: h("div", { class: "chips" }), cache: cell("cache num") };
  row.main = h("tr", { role: "row", class: "main" }, cell("name", toggle), row.calls, row.compilations, cell("causes", row.causes),
    cell("time", h("div", { class: "timing" }, bar, total)), row.program, row.cache);
  row.why = h("tr", { role: "row", class: "why" }, reason);
  row.node = h("tbody", { role: "rowgroup", "data-function": fn.name, class: APART[fn.name] ? "apart" : null }, row.main, row.why);
  const press = (event) => {
    if (!event.target.closest("button") && String(window.getSelection())) return;
    if (opened.has(fn.name)) opened.delete(fn.name); else opened.add(fn.name);
    row.seen = null;
    updateFunction(row, row.fn, row.longest);
  };
  row.main.addEventListener("click", press);
  row.why.addEventListener("click", press);
  return row;
}

// What a small program costs is read after a while, and stands with the function; of a dear one the event tells at once.
function programOf(fn) {
  const read = fn.program && (fn.program.flops != null || sum(fn.program.memory));
  return read ? fn.program : feed.programs.get(fn.name);
}

function updateFunction(row, fn, longest) {
  const open = opened.has(fn.name);
  const program = programOf(fn);
  const seen = JSON.stringify([fn, longest, open, program && program.sequence]);
  if (row.seen === seen) return;
  Object.assign(row, { seen, fn, longest });
  row.node.classList.toggle("open", open);
  row.toggle.setAttribute("aria-expanded", String(open));
  updateCalls(row.calls, fn);
  updateProgram(row.program, program);
  row.calls.classList.toggle("none", fn.calls == null);
  setText(row.compilations, brief(compiled(fn)));
  setTitle(row.compilations, compiled(fn) < 1e6 ? "" : count(compiled(fn)));
  const causes = Object.entries(fn.compilations).map(([cause, by]) => [cause, sum(by)])
    .sort((a, b) => (a[0] === "first_call") - (b[0] === "first_call") || b[1] - a[1]);
  redraw(row.causes, causes, () => causes.map(([cause, n]) => chip(cause, n)));
  const seconds_ = fn.phase_seconds;
  stacked(row.bar, PHASES.map((phase) => [phase, seconds_[phase] || 0, `phase-${phase}`]), Math.sqrt(spent(fn) * longest) || 1);
  row.bar.title = PHASES.filter((phase) => seconds_[phase] != null).map((phase) => `${spaced(phase)} ${seconds(seconds_[phase])}`).join("\n");
  setText(row.total, seconds(spent(fn)));
  updateCache(row.cache, fn.cache);
  const reason = (Object.hasOwn(APART, fn.name) && APART[fn.name]) || (recompiled(fn) > 0 && unnamed(fn.last_reason, fn.name)) || "";
  redraw(row.reason, reason, () => sentence(changeAndCure(reason)[0])); // what to do stands with its compilation
  setTitle(row.reason, reason);
  show(row.why, Boolean(reason) && !open);
  row.node.classList.toggle("explained", Boolean(reason) && !open);
  if (row.detail && !open) { row.detail.remove(); row.detail = null; }
  if (!open) return;
  if (!row.detail) { row.detail = h("tr", { class: "detail", role: "row", id: row.id }, h("td", { colspan: spanned(), role: "cell" })); row.node.append(row.detail); }
  redraw(row.detail.firstChild, [fn, program && program.sequence], () => detailOf(fn, program));
}

const UNCOUNTED = "Not instrumented: jaxobs sees only its compilations. jaxobs.jit and jaxobs.instrument also count calls.";
const missesOf = (fn) => Object.entries(fn.fastpath_misses).filter(([, n]) => n).sort((a, b) => b[1] - a[1]).map(([cause, n]) => `${spaced(cause)} ${count(n)}`);

function updateCalls(cell, fn) {
  const slow = sum(fn.fastpath_misses);
  redraw(cell, [fn.calls, fn.fastpath_misses], () => [brief(fn.calls), slow ? h("small", { class: "slow", text: `${brief(slow)} slow` }) : ""]);
  setTitle(cell, slow ? `Calls that fell out of the fast path and compiled nothing:\n${missesOf(fn).join("\n")}` : fn.calls == null ? UNCOUNTED : fn.calls < 1e6 ? "" : count(fn.calls));
}

function updateProgram(cell, program) {
  redraw(cell, program ? [program.flops, program.memory] : null, () => (program
    ? [program.flops == null ? "" : flops(program.flops), h("small", { text: programBytes(program.memory) == null ? "" : bytes(programBytes(program.memory)) })]
    : [h("span", { class: "none", text: DASH })]));
}

function updateCache(cell, results) {
  const { hit = 0, miss = 0, disabled = 0 } = results;
  redraw(cell, results, () => {
    if (!hit && !miss) return [h("span", { class: "none", text: disabled ? "off" : DASH })];
    return [hit && h("span", { class: "badge hit", text: `${brief(hit)} hit` }), hit && miss && " ", miss && h("span", { class: "badge miss", text: `${brief(miss)} miss` })].filter(Boolean);
  });
  setTitle(cell, ["hit", "miss", "disabled"].filter((each) => results[each]).map((each) => `${each} ${count(results[each])}`).join(", "));
}

function detailOf(fn, program) {
  const line = (title, ...content) => [h("dt", { text: title }), h("dd", {}, ...content)];
  const rows = PHASES.filter((phase) => fn.phase_seconds[phase] != null).map((phase) => {
    const n = fn.phase_counts[phase];
    const mark = h("i", { "aria-hidden": "true" });
    mark.style.background = `var(--phase-${phase})`;
    return h("span", { class: "phase-fact" }, mark, `${spaced(phase)} ${seconds(fn.phase_seconds[phase])}`, n > 1 ? h("small", { text: ` ${count(n)} × ${seconds(fn.phase_seconds[phase] / n)}` }) : null);
  });
  return [h("dl", {},
    ...line("Function", h("code", { text: fn.name })),
    ...(fn.last_reason ? line("Last reason", ...sentence(fn.last_reason)) : []),
    ...(fn.last_compiled ? line("Last compiled", moment(fn.last_compiled)) : []),
    ...(rows.length ? line("Phases", ...rows) : []),
    ...(fn.dispatch ? line("Dispatch", dispatchOf(fn.dispatch)) : []),
    ...(fn.device ? line("On the device, at most", dispatchOf(fn.device)) : []),
    ...(sum(fn.fastpath_misses) ? line("Slow calls", `${plural(sum(fn.fastpath_misses), "call")} fell out of the fast path and compiled nothing: ${missesOf(fn).join(", ")}`) : []),
    ...(program ? programLines(program) : []),
    ...(sum(fn.out_of_memory) ? line("Out of memory", Object.entries(fn.out_of_memory).map(([device, n]) => `${plural(n, "call")}${device ? ` on ${device}` : ""}`).join(", ")) : []),
    ...(sum(fn.errors) ? line("Errors", Object.entries(fn.errors).map(([type, n]) => `${type} ${count(n)}`).join(", ")) : []),
    ...(fn.calls == null && fn.name !== EAGER ? line("Calls", "Not counted. Use jaxobs.jit instead of jax.jit, or jaxobs.instrument, to count and time them.") : []))];
}

// Buckets give bounds, not values: say at most, and nothing finer.
function dispatchOf(histogram) {
  const total = sum(histogram.counts);
  if (!total) return "no call timed yet";
  const bound = (q) => {
    let seen = 0;
    const at = histogram.counts.findIndex((n) => (seen += n) >= q * total);
    return at < histogram.bounds.length ? `≤ ${seconds(histogram.bounds[at])}` : `> ${seconds(histogram.bounds[histogram.bounds.length - 1])}`;
  };
  return `mean ${seconds(histogram.sum / total)}, median ${bound(0.5)}, 99 % ${bound(0.99)}, ${plural(total, "call")} timed`;
}

function drawFunctions(snap) {
  const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = sorted(snap.functions.filter((fn) => matches(fn, words)));
  const longest = Math.max(0, ...snap.functions.map(spent));
  const shown = found.filter((fn, n) => n < rowsShown || Object.hasOwn(APART, fn.name));
  show($("functions-more"), shown.length < found.length);
  setText($("functions-more"), `show ${count(Math.min(ROWS, found.length - shown.length))} more of ${count(found.length)}`);
  keyed($("table"), shown, (fn) => fn.name, makeFunction, (row, fn) => updateFunction(row, fn, longest), $("table").tHead);
  for (const head of $("columns").children)
    head.setAttribute("aria-sort", head.dataset.column !== sorting.id ? "none" : sorting.up ? "ascending" : "descending");
  setText($("functions-count"), words.length ? `${found.length} of ${snap.functions.length}` : count(snap.functions.length));
  show($("table"), found.length > 0);
  show($("functions-empty"), !found.length);
  redraw($("functions-empty"), [snap.observer.installed, words], () => words.length
    ? [h("strong", { text: "No function matches" }), h("p", { text: `No name or cause matches “${words.join(" ")}”.` })]
    : snap.observer.installed
      ? [h("strong", { text: "No compilation yet" }), h("p", { text: "Functions appear here when the program first calls a jitted function or runs a JAX operation." })]
      : [h("strong", { text: "jaxobs does not see compilations" }), h("p", {}, "Call ", h("code", { text: "jaxobs.install()" }), " early in the program, or start it with ", h("code", { text: "jaxobs run SCRIPT" }), ".")]);
}
