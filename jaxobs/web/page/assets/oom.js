// The latest report of a call that died of memory, above everything else: why, what to do, and what was there.
const STAGES = { start: "while JAX took the device", compile: "while it was compiled", load: "while its program was loaded", run: "while it ran", allocate: "while an array was made" };
const oom = { closed: null };

const oomKey = (event) => `${event.pid} ${event.sequence} ${event.time}`;
const oomTotals = (functions) => functions.map((fn) => [fn.name, sum(fn.out_of_memory)]).filter(([, n]) => n).sort((a, b) => b[1] - a[1]);

function drawOutOfMemory(snap) {
  const event = snap.last_out_of_memory;
  show($("oom"), Boolean(event));
  if (!event) return;
  const key = oomKey(event);
  const open = oom.closed !== key;
  show($("oom-body"), open);
  setText($("oom-toggle"), open ? "hide" : "show");
  $("oom-toggle").setAttribute("aria-expanded", String(open));
  const totals = oomTotals(snap.functions);
  const all = totals.reduce((n, [, each]) => n + each, 0);
  setText($("oom-ago"), page.recorded ? when(event.time) : `${when(event.time)} · ${ago(now() - event.time)}`);
  setTitle($("oom-ago"), moment(event.time));
  redraw($("oom-title"), key, () => ["Out of memory ", nameNode(event.function), h("span", { class: "quiet", text: STAGES[event.stage] || "" })]);
  setText($("oom-times"), all > 1 ? `${count(all)} times: ${totals.slice(0, 3).map(([name, n]) => `${splitName(name)[1]} ${count(n)}`).join(", ")}${totals.length > 3 ? ", …" : ""}` : "");
  setText($("oom-status"), `Out of memory: ${event.function}${event.wanted_bytes == null ? "" : `, ${bytes(event.wanted_bytes)} wanted`}. ${event.causes.length ? event.causes[0].summary : ""}`);
  redraw($("oom-body"), key, () => oomBody(event).filter(Boolean));
}

function toggleOutOfMemory(snap) {
  const key = oomKey(snap.last_out_of_memory);
  oom.closed = oom.closed === key ? null : key;
  drawOutOfMemory(snap);
}

function oomBody(event) {
  const figures = [["wanted", event.wanted_bytes], ["in use", event.used_bytes], ["free", event.free_bytes], ["limit", event.limit_bytes], ["excess", event.exceeded_bytes], ["total", event.total_bytes]]
    .filter(([, value]) => value != null).map(([name, value]) => [name, bytes(value), `${count(value)} bytes`]);
  if (event.device) figures.push(["device", event.device, ""]);
  return [
    h("dl", { class: "figures-row" }, ...figures.map(([name, text, title]) => h("div", {}, h("dt", { text: name }), h("dd", { class: "num", title: title || null, text })))),
    event.causes.length ? h("ol", { class: "causes-list" }, ...event.causes.map(oomCause)) : h("p", { class: "quiet", text: "Too many such errors: this one was counted, but has no report." }),
    h("p", { class: "where" },
      event.call_site ? h("span", { class: "site" }, "called at ", h("code", { title: event.call_site, text: event.call_site.split("/").slice(-2).join("/") }), copier(event.call_site, "call site")) : null,
      symptomOf("out_of_memory"),
      event.report ? h("span", { class: "site" }, "report ", h("code", { title: event.report, text: event.report }), copier(event.report, "path of the report")) : null),
    h("div", { class: "opened" }, ...oomDetails(event).filter(Boolean)),
  ];
}

function oomCause(cause, n) {
  return h("li", { "data-cause": cause.cause },
    h("p", { class: "summary" }, h("span", { class: "kind", text: spaced(cause.cause) }), ...sentence(cause.summary)),
    h("p", { class: "advice" }, h("strong", { text: "Do" }), ...sentence(cause.advice)),
    cause.evidence.length ? h("details", { open: n === 0 && cause.evidence.length < 4 }, h("summary", { text: "evidence" }), h("ul", {}, ...cause.evidence.map((text) => h("li", {}, ...sentence(text))))) : null);
}

const part = (title, ...content) => h("details", {}, h("summary", { text: title }), ...content);
const lines = (texts) => h("pre", { class: "told-lines mono", tabindex: "0", text: texts.join("\n") });

function oomDetails(event) {
  const { devices, arrays } = event;
  return [
    devices.length ? part(`Devices at that moment (${count(devices.length)})`, plainTable("Devices at that moment", ["device", "in use", "limit", "peak", "largest free block", "live arrays"],
      devices.map((m) => [m.device, bytes(m.in_use_bytes), bytes(m.limit_bytes), bytes(m.peak_bytes), bytes(m.largest_free_block_bytes), m.live_array_bytes == null ? DASH : `${bytes(m.live_array_bytes)} in ${count(m.live_arrays)}`]))) : null,
    arrays.length ? part(`Largest groups of live arrays (${count(arrays.length)})`, plainTable("Largest groups of live arrays at that moment", ["array", "sharding", "arrays", "most on a device", "share there"],
      arrays.map((each, n) => [groupName(each), each.sharding, count(each.count), bytes(Math.max(0, ...Object.values(each.bytes_per_device))), event.array_shares[n] == null ? DASH : percent(event.array_shares[n])]))) : null,
    oomProgram(event),
    event.compilations.length ? part("Compilations before it", lines(event.compilations)) : null,
    event.samples.length ? part("Memory before it", lines(event.samples)) : null,
    part("Error, versions, flags", h("dl", {},
      ...[["Error", event.error], ["Called with", event.signature], ["Host memory", Object.entries(event.host).map(([name, value]) => `${name} ${bytes(value)}`).join(", ")],
        ["Flags", Object.entries(event.flags).map(([name, value]) => `${name}=${value}`).join(" ")], ["Versions", Object.entries(event.versions).map(([name, value]) => `${name} ${value}`).join(", ")]]
        .filter(([, text]) => text).flatMap(([name, text]) => [h("dt", { text: name }), h("dd", { class: "mono", text })])),
      event.message ? lines([event.message]) : null),
  ];
}

function oomProgram({ program, sections, buffers, program_flops: operations }) {
  const told = (name, sizes) => (Object.keys(sizes).length ? [h("dt", { text: name }), h("dd", { text: Object.entries(sizes).map(([section, value]) => `${SECTION_NAMES[section] || spaced(section)} ${bytes(value)}`).join(", ") })] : []);
  const rows = [...told("According to the compiler", program), ...told("According to the error", sections), ...(operations == null ? [] : [h("dt", { text: "FLOPs" }), h("dd", { class: "num", text: flops(operations) })])];
  if (!rows.length && !buffers.length) return null;
  return part("What the program needs", rows.length ? h("dl", {}, ...rows) : null,
    buffers.length ? plainTable("Largest buffers", ["largest buffers", "shape", "padding", "size"], buffers.map((each) => [each.operator || each.allocation || DASH, each.shape || DASH, each.padding ? bytes(each.padding) : DASH, bytes(each.size)])) : null);
}

// A table of texts; the first column names the row.
function plainTable(label, heads, rows) {
  const kind = (n) => (["sharding", "shape"].includes(heads[n]) ? "mono wide" : "num");
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, ...heads.map((text, n) => h("th", { scope: "col", class: n ? kind(n) : null, text })))),
    h("tbody", {}, ...rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row", class: "mono wide", text: first }), ...rest.map((text, n) => h("td", { class: kind(n + 1), "data-label": heads[n + 1], text })))))));
}
