// Memory of each device over time, by itself: devices are never summed or averaged, but share their scales.
const ROOMY = 8, WINDOW = 60;
let cursorTime = null;

// Ticks at 1, 2 or 5 times a power of ten of KiB, MiB, GiB: what a person expects beside a limit of 80 GiB.
function byteTicks(top, wanted) {
  const unit = 1024 ** Math.max(0, Math.min(5, Math.floor(Math.log2(Math.max(top / wanted, 1)) / 10)));
  const rough = top / wanted / unit;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough - 1e-9)) * unit;
  const ticks = [];
  for (let value = 0; value <= top * 1.0001; value += step) ticks.push(value);
  return ticks;
}

function timeTicks(from, to, wanted) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800];
  const step = steps.find((each) => (to - from) / each <= wanted) || 2592000;
  const shift = new Date(from * 1000).getTimezoneOffset() * 60;
  const ticks = [];
  for (let t = Math.ceil((from - shift) / step) * step + shift; t <= to; t += step) ticks.push(t);
  return { ticks, label: (t) => (step >= 86400 ? moment(t).slice(5, 10) : clock(t, step < 60)) };
}

// The marks below a chart, and their times where there is room.
function timeAxis({ from, to, box, x, below = 0 }) {
  const { ticks, label } = timeTicks(from, to, Math.max(2, Math.floor((box.right - box.left) / 90)));
  return ticks.flatMap((tick) => {
    const at = x(tick), edge = box.bottom + below;
    return [s("line", { class: "grid", x1: at, x2: at, y1: edge, y2: edge + 4 }),
      ...(at > box.left + 18 && at < box.right - 24 ? [s("text", { class: "tick", x: at, y: edge + 15, "text-anchor": "middle" }, label(tick))] : [])];
  });
}

// At most two points for a pixel, the lowest and the highest: a short spike stays visible.
function thinned(points, width) {
  if (points.length <= width * 2) return points;
  const kept = [];
  for (let i = 0; i < points.length; ) {
    const pixel = Math.round(points[i][0]);
    let low = points[i], high = points[i];
    for (; i < points.length && Math.round(points[i][0]) === pixel; i += 1) {
      if (points[i][1] < low[1]) low = points[i];
      if (points[i][1] > high[1]) high = points[i];
    }
    kept.push(...(low === high ? [low] : low[0] <= high[0] ? [low, high] : [high, low]));
  }
  return kept;
}

// Runs of neighbouring samples that have the value; a sample without it is a gap, not a zero.
function runs(samples, value, x, y) {
  const found = [];
  let run = [];
  for (const sample of samples) {
    const told = value(sample);
    if (told == null) { if (run.length) found.push(run); run = []; } else run.push([x(sample.time), y(told)]);
  }
  return run.length ? [...found, run] : found;
}

const path = (points) => points.map(([px, py], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");

function makeDevice(device) {
  const used = h("span", { class: "num used" }), of = h("span", { class: "quiet" });
  const svg = s("svg", { class: "chart", role: "img", tabindex: "0" });
  const node = h("figure", { class: "device", "data-device": device.device },
    h("figcaption", {}, h("strong", { class: "mono", text: device.device, title: `${device.device_kind}, id ${device.id}` }), used, of), svg);
  const row = { node, svg, used, of };
  svg.addEventListener("pointermove", (event) => pointAt(row, event));
  svg.addEventListener("pointerleave", () => cross(null));
  svg.addEventListener("blur", () => cross(null));
  svg.addEventListener("keydown", (event) => stepAt(row, event));
  return row;
}

function updateDevice(row, device, scale) {
  const memory = device.memory || {};
  const primary = memory.in_use_bytes ?? memory.live_array_bytes;
  setText(row.used, bytes(primary));
  const limit = memory.limit_bytes;
  const ratio = limit && memory.in_use_bytes != null ? memory.in_use_bytes / limit : null;
  setText(row.of, ratio != null ? `${percent(ratio)} of ${bytes(limit)}` : memory.in_use_bytes == null && memory.live_arrays != null ? `in ${plural(memory.live_arrays, "live array")}` : "");
  row.node.dataset.state = fullness(ratio);
  const samples = memories.get(device.device) || [];
  const last = samples[samples.length - 1];
  const seen = JSON.stringify([samples.length, last, scale, memory.peak_bytes, limit, row.svg.clientWidth, row.svg.clientHeight]);
  Object.assign(row, { device, scale, samples });
  row.svg.setAttribute("aria-label", `Memory of ${device.device} over time: ${bytes(primary)} now${limit ? ` of ${bytes(limit)}` : ""}${memory.peak_bytes != null ? `, peak ${bytes(memory.peak_bytes)}` : ""}. Use the arrow keys to read single samples.`);
  if (row.seen !== seen) drawChart(row);
  row.seen = seen;
}

const both = (value) => (sample) => (sample.used == null || sample.live == null ? null : value(sample));
// Each area reaches down to zero and the next one covers its lower part: what is left to see are the parts.
const LAYERS = [
  ["area", "unsplit", (sample) => sample.used],
  ["area", "gap", both((sample) => sample.used)],
  ["area", "code", both((sample) => (sample.code ? sample.live + sample.code : null))],
  ["area", "arrays", both((sample) => sample.live)],
  ["line", "live", (sample) => sample.live],
  ["line", "high", (sample) => sample.high],
  ["line", "used", (sample) => sample.used],
];
const LAYERS_AS_LIVE = [["area", "arrays as-live", (sample) => sample.live], ["line", "used as-live", (sample) => sample.live]];

function drawChart(row) {
  const { svg, samples, device, scale } = row;
  const width = Math.max(svg.clientWidth, 60), height = Math.max(svg.clientHeight, 24);
  const box = scale.compact ? { left: 0, right: width, top: 2, bottom: height - 1 } : { left: 54, right: width - 6, top: 8, bottom: height - 20 };
  const x = (t) => box.left + ((t - scale.from) / (scale.to - scale.from)) * (box.right - box.left);
  const y = (v) => box.bottom - (v / scale.top) * (box.bottom - box.top);
  Object.assign(row, { box, x, y });
  const parts = [];
  if (!scale.compact) {
    for (const tick of byteTicks(scale.top, 5)) parts.push(s("line", { class: "grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }), s("text", { class: "tick", x: box.left - 8, y: y(tick) + 3.5, "text-anchor": "end" }, bytes(tick).replace(".0 ", " ")));
    parts.push(...timeAxis({ from: scale.from, to: scale.to, box, x }));
  }
  const memory = device.memory || {};
  for (const [form, kind, value] of samples.some((sample) => sample.used != null) ? LAYERS : LAYERS_AS_LIVE) {
    for (const run of runs(samples, value, x, y)) {
      const points = thinned(run, box.right - box.left);
      const edge = form === "area" ? `L${points[points.length - 1][0].toFixed(1)} ${box.bottom}L${points[0][0].toFixed(1)} ${box.bottom}Z` : "";
      parts.push(s("path", { class: `${form} ${kind}`, d: `${path(points)}${edge}` }));
      if (form === "line" && kind !== "high" && run.length === 1) parts.push(s("circle", { class: `dot ${kind}`, cx: run[0][0], cy: run[0][1], r: 2 }));
    }
  }
  for (const [kind, value] of [["peak", memory.peak_bytes], ["limit", memory.limit_bytes]])
    if (value != null && value <= scale.top * 1.001) parts.push(s("line", { class: kind, x1: box.left, x2: box.right, y1: y(value), y2: y(value) }));
  row.cross = s("g", { class: "cross" });
  svg.replaceChildren(...parts, row.cross);
  drawCross(row);
}

function nearest(samples, time) {
  let best = null;
  for (const sample of samples) if (!best || Math.abs(sample.time - time) <= Math.abs(best.time - time)) best = sample;
  return best;
}

function drawCross(row) {
  const sample = cursorTime == null ? null : nearest(row.samples, cursorTime);
  if (!sample) return row.cross.replaceChildren();
  const at = row.x(sample.time);
  const value = sample.used ?? sample.live;
  row.cross.replaceChildren(s("line", { x1: at, x2: at, y1: row.box.top, y2: row.box.bottom }), ...(value == null ? [] : [s("circle", { cx: at, cy: row.y(value), r: 3 })]));
}

function cross(time, row, clientX, clientY) {
  cursorTime = time;
  for (const each of ($("charts").keyedRows || new Map()).values()) drawCross(each);
  const tip = $("tip");
  const sample = time == null ? null : nearest(row.samples, time);
  show(tip, Boolean(sample));
  if (!sample) return;
  tip.replaceChildren(h("strong", { text: `${row.device.device}  ${clock(sample.time)}` }),
    ...toldOf(sample, row.device.memory).map(([name, value]) => h("span", {}, h("em", { text: name }), h("b", { class: "num", text: signed(value) }))));
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(clientX + 14, window.innerWidth - width - 8))}px`;
  tip.style.top = `${Math.max(4, clientY - height - 12)}px`;
}

function toldOf(sample, memory) {
  const parts = accountOf(sample);
  return [["in use", sample.used], ["live arrays", sample.live], ["code", sample.used == null ? null : sample.code], [GAP_NAME, parts && sample.used != null ? parts.gap : null],
    ["high water", sample.high], ["limit", memory && memory.limit_bytes]].filter(([, value]) => value != null);
}

function pointAt(row, event) {
  const area = row.svg.getBoundingClientRect();
  const { box, scale } = row;
  const part = Math.max(0, Math.min(1, (event.clientX - area.left - box.left) / (box.right - box.left)));
  cross(scale.from + part * (scale.to - scale.from), row, event.clientX, event.clientY);
}

function stepAt(row, event) {
  const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === "Escape") return cross(null);
  if (!way || !row.samples.length) return;
  event.preventDefault();
  const now = cursorTime == null ? row.samples.length - 1 : row.samples.indexOf(nearest(row.samples, cursorTime)) + way;
  const sample = row.samples[Math.max(0, Math.min(row.samples.length - 1, now))];
  const area = row.svg.getBoundingClientRect();
  cross(sample.time, row, area.left + row.x(sample.time), area.top + row.box.top);
}

function drawDevices(snap) {
  const devices = ordered(snap.devices);
  for (const known of memories.keys()) if (!devices.some((each) => each.device === known)) memories.delete(known);
  show($("charts"), devices.length > 0);
  show($("devices-empty"), !devices.length);
  redraw($("devices-empty"), devices.length, () => [h("strong", { text: "No devices yet" }), h("p", { text: "They appear when the program first uses JAX. jaxobs never opens them itself, because that would take them from the program." })]);
  setText($("devices-count"), devices.length ? plural(devices.length, "device") : "");
  const charts = $("charts");
  charts.dataset.size = devices.length > ROOMY ? "compact" : devices.length === 1 ? "one" : devices.length === 2 ? "two" : "some";
  const scale = scaleOf(snap, devices);
  keyed(charts, devices, (each) => each.device, makeDevice, null);
  for (const each of devices) updateDevice(charts.keyedRows.get(each.device), each, scale);
  drawMemoryLegend(devices, scale);
}

function scaleOf(snap, devices) {
  let to = snap.time, from = Infinity, held = 1, told = false, coded = false;
  for (const device of devices) {
    const samples = memories.get(device.device) || [];
    if (samples.length) { from = Math.min(from, samples[0].time); to = Math.max(to, samples[samples.length - 1].time); }
    for (const { used, live, code, high } of samples) {
      held = Math.max(held, used ?? 0, (live ?? 0) + (used == null ? 0 : code ?? 0), high ?? 0);
      told ||= used != null;
      coded ||= used != null && code > 0;
    }
    held = Math.max(held, (device.memory && device.memory.peak_bytes) || 0);
  }
  const limit = Math.max(0, ...devices.map((each) => (each.memory && each.memory.limit_bytes) || 0));
  // A limit far above what is held would press the line flat: then the caption tells it.
  const top = limit && held > limit / 4 ? Math.max(limit, held) * 1.02 : held * 1.12;
  return { from: page.recorded ? Math.min(to - 1, from, snap.process.started) : Math.min(to - WINDOW, from), to, top, compact: devices.length > ROOMY, told, coded, limited: limit > 0 };
}

function drawMemoryLegend(devices, { told, coded, limited }) {
  const some = devices.length > 0;
  redraw($("memory-legend"), [some, told, coded, limited, devices.length > 1], () => [
    some && told && swatch("in use", "memory-used", "line"), some && swatch("live arrays", "memory-live"),
    told && coded && swatch("code", "memory-code"), told && swatch(GAP_NAME, "memory-gap"),
    told && swatch("peak", "memory-edge", "dashed"), told && limited && swatch("limit", "bad", "line"),
    devices.length > 1 && h("li", { class: "quiet", text: "one scale for all" })].filter(Boolean));
}
