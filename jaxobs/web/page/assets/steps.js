// Loops of steps: how fast they go, and lines of their step times.
const SPARK_WIDTH = 140, SPARK_HEIGHT = 22;
const ROOM_ABOVE = 1.15; // of the highest mean: a longest step beyond it is drawn as a mark at the upper edge

// Step times of the loop that went on last over its whole run: the mean of each span, and its longest step.
function drawSteps(snap) {
  const loop = lastLoop(snap);
  const history = (loop && loop.history) || []; // a recorded page may be older
  const svg = $("steps-chart");
  show($("steps"), history.length > 1);
  if (history.length < 2) return;
  setText($("steps-title"), `Step time of ${splitName(loop.name)[1]}`);
  setTitle($("steps-title"), loop.name);
  const seen = JSON.stringify([loop.name, history, svg.clientWidth]);
  if (svg.dataset.seen === seen) return;
  svg.dataset.seen = seen;
  const width = Math.max(svg.clientWidth, 200), height = Math.max(svg.clientHeight, 80);
  const box = { left: 54, right: width - 14, top: 10, bottom: height - 20 };
  const from = history[0][0], to = Math.max(from + 1, history[history.length - 1][0]);
  const means = history.map(([, mean]) => mean);
  const top = Math.max(...means) * ROOM_ABOVE || 1e-9;
  const x = (time) => box.left + ((time - from) / (to - from)) * (box.right - box.left);
  const y = (value) => box.bottom - (Math.min(value, top) / top) * (box.bottom - box.top);
  const parts = timeAxis({ from, to, box, x });
  for (const tick of [0, 0.5, 1].map((part) => (part * top) / ROOM_ABOVE))
    parts.push(s("line", { class: "grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }), s("text", { class: "tick", x: box.left - 8, y: y(tick) + 3.5, "text-anchor": "end" }, seconds(tick)));
  const gap = (n) => (history[n] && history[n - 1] ? history[n][0] - history[n - 1][0] : 0);
  const runs = [];
  history.forEach((span, n) => {
    if (!n || gap(n) > 3 * (Math.max(gap(n - 1), gap(n + 1)) || Infinity)) runs.push([]); // no steps in between
    runs[runs.length - 1].push(span);
  });
  for (const each of runs)
    for (const [name, at] of [["longest", 2], ["mean", 1]]) parts.push(s("path", { class: `line ${name}`, d: `${path(each.map((span) => [x(span[0]), y(span[at])]))}h1` }));
  for (const [time, , longest] of history)
    if (longest > top) parts.push(s("path", { class: "beyond", d: `M${x(time).toFixed(1)} ${box.top - 7}l4 6h-8z` }, s("title", {}, `${clock(time)}: ${seconds(longest)}`)));
  svg.replaceChildren(...parts);
  const most = seconds(Math.max(...history.map(([, , longest]) => longest)));
  svg.setAttribute("aria-label", `Step time over ${span(to - from)}: means from ${seconds(Math.min(...means))} to ${seconds(Math.max(...means))}, the longest step ${most}`);
  redraw($("steps-legend"), most, () => [swatch("mean", "accent", "line"), swatch(`longest, up to ${most}`, "warn", "line")]);
}

function drawLoops(snap) {
  const all = snap.loops || []; // a recorded page may be older
  show($("loops"), all.length > 0);
  if (!all.length) return;
  setText($("loops-count"), plural(all.length, "loop"));
  keyed($("loops-rows"), all, (each) => each.name, makeLoop, updateLoop);
}

function makeLoop(loop) {
  const cells = {};
  const cell = (name, label) => (cells[name] = h("td", { class: "num", "data-label": label }));
  const marks = h("span", { class: "marks" });
  const node = h("tr", { "data-loop": loop.name }, h("th", { scope: "row" }, nameNode(loop.name), " ", marks),
    cell("steps", "steps"), cell("rate", "steps per second"), cell("time", "step time"), cell("items", "items per second"), cell("mfu", "MFU"), h("td", {}, cells.line = h("span")));
  return { node, cells, marks };
}

const mfuOf = ({ mfu, mfu_range: range }) => (mfu != null ? `${(100 * mfu).toPrecision(3)} %` : range ? `${range.map((each) => (100 * each).toPrecision(2)).join("–")} %` : "");
const perSecond = (value) => (value == null ? DASH : value < 0.005 ? "0" : value >= 99.5 ? count(Math.round(value)) : value.toPrecision(3));

function updateLoop({ cells, marks }, loop) {
  redraw(marks, [loop.found, loop.slow, loop.failed], () => [
    loop.found ? h("span", { class: "badge", title: "A function that is called in a loop: its calls are the steps", text: "found" }) : "",
    loop.slow ? h("span", { class: "badge slowed", title: "Steps that took more than three times as long as a typical one", text: `${count(loop.slow)} slow` }) : "",
    loop.failed ? h("span", { class: "badge lost", title: "Steps that an exception ended", text: `${count(loop.failed)} failed` }) : "",
  ]);
  setText(cells.steps, loop.steps_counted === false ? DASH : count(loop.steps));
  setTitle(cells.steps, loop.steps_counted === false ? `jaxobs saw ${count(loop.steps)} calls, not all` : "");
  setText(cells.rate, perSecond(loop.steps_per_second));
  redraw(cells.time, [loop.mean_seconds, loop.p50_seconds, loop.p99_seconds], () => (loop.p50_seconds == null
    ? [seconds(loop.mean_seconds), loop.mean_seconds == null ? "" : h("small", { text: " mean" })]
    : [seconds(loop.p50_seconds), h("small", { text: ` p99 ${seconds(loop.p99_seconds)}` })]));
  setText(cells.items, perSecond(loop.items_per_second));
  setText(cells.mfu, mfuOf(loop) || DASH);
  setTitle(cells.mfu, loop.mfu == null ? loop.mfu_unknown || "" : `${flops(loop.flops)} per step of ${flops(loop.peak_flops)}/s on one device`);
  redraw(cells.line, loop.recent, () => [sparkOf(loop.recent)]);
}

// The recent step times from 0 up to the longest, the latest on the right.
function sparkOf(values) {
  const top = Math.max(...values, 1e-9), step = SPARK_WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, n) => `${(n * step).toFixed(1)},${(SPARK_HEIGHT - 1 - (value / top) * (SPARK_HEIGHT - 2)).toFixed(1)}`).join(" ");
  const text = values.length ? `from ${seconds(Math.min(...values))} to ${seconds(top)}` : "none yet";
  return s("svg", { class: "spark", viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`, width: SPARK_WIDTH, height: SPARK_HEIGHT, role: "img", "aria-label": `Recent step times ${text}` },
    s("polyline", { points, fill: "none", stroke: "var(--accent)", "stroke-width": 1.5, "stroke-linejoin": "round", "vector-effect": "non-scaling-stroke" }));
}
