// Inputs: what an interval between two batches consists of, and who holds whom up. Below them, the watched values.
const VERDICTS = { input: ["input-bound", "slowed"], compute: ["input keeps up", "hit"], mixed: ["both cost", ""] };

function drawInputs(snap) {
  const all = snap.inputs || []; // a recorded page may be older
  show($("inputs"), all.length > 0);
  setText($("inputs-count"), count(all.length));
  keyed($("inputs-list"), all, (each) => each.name, makeInput, updateInput);
}

function makeInput(input) {
  const row = { verdict: h("span", { class: "badge" }), figures: h("p", { class: "dots num quiet" }), bar: h("div", { class: "bar", "aria-hidden": "true" }), key: h("ul", { class: "legend" }), summary: h("p") };
  row.node = h("li", { "data-input": input.name }, h("div", { class: "named" }, h("h3", { class: "mono", text: input.name }), row.verdict, row.figures), row.bar, row.key, row.summary);
  return row;
}

function updateInput(row, input) {
  const [word, kind] = VERDICTS[input.verdict] || ["not known yet", ""];
  const wait = input.mean_wait_seconds, whole = input.mean_interval_seconds;
  const parts = whole == null ? [] : [["waited for input", wait, "time-input_wait"], ["all else", Math.max(0, whole - wait), "time-step"]];
  setText(row.verdict, input.elsewhere_batches * 2 > input.batches ? "on another thread" : word);
  row.verdict.className = `badge ${kind}`;
  pieces(row.figures, [plural(input.batches, "batch", "batches"), `${seconds(input.wait_seconds)} waited in total`, input.hidden != null && `devices still busy in ${percent(input.hidden)} of ${plural(input.looks, "sample")}`]);
  show(row.bar, whole != null);
  stacked(row.bar, parts, whole || 1);
  redraw(row.key, parts.map(([name, value]) => [name, seconds(value)]), () => parts.map(([name, value, colour]) => {
    const item = swatch(name, colour);
    item.append(h("b", { class: "num", text: ` ${seconds(value)}` }), h("span", { class: "num quiet", text: ` ${percent(value / whole)} of a batch` }));
    return item;
  }));
  redraw(row.summary, [input.summary, whole == null], () => (whole == null || input.hidden > 0.5 ? sentence(input.summary) : []));
}

// What is not finite comes first.
function drawWatched(snap) {
  const all = snap.watched || [];
  const bad = all.filter((each) => each.nonfinite > 0);
  show($("watched"), all.length > 0);
  setText($("watched-count"), `${count(all.length)}${bad.length ? `, ${count(bad.length)} not finite` : ""}`);
  keyed($("watched-rows"), [...bad, ...all.filter((each) => !each.nonfinite)], (each) => each.name, makeWatched, updateWatched);
}

function makeWatched(watched) {
  const cells = {};
  const cell = (name, label, css = "num") => (cells[name] = h("td", { class: css, "data-label": label }));
  const node = h("tr", { "data-watched": watched.name }, h("th", { scope: "row" }, h("span", { class: "mono", text: watched.name })),
    cell("state", "now", "state"), cell("checked", "values checked"), cell("bad", "not finite"), cell("step", "first at call"), cell("skipped", "not checked"));
  return { node, cells };
}

function updateWatched({ cells }, w) {
  const [word, kind] = w.finite == null ? (w.nonfinite ? ["not finite", "lost"] : ["not checked yet", ""]) : w.finite ? ["finite", "hit"] : ["not finite", "lost"];
  redraw(cells.state, word, () => [h("span", { class: `badge ${kind}`, text: word })]);
  redraw(cells.checked, [w.checked, w.calls], () => [count(w.checked), w.calls > w.checked ? h("small", { text: ` of ${count(w.calls)}` }) : ""]);
  setText(cells.bad, count(w.nonfinite));
  cells.bad.classList.toggle("bad", w.nonfinite > 0);
  setText(cells.step, w.step == null ? DASH : count(w.step));
  setText(cells.skipped, Object.entries(w.skipped).map(([reason, n]) => `${count(n)} ${spaced(reason)}`).join(", ") || DASH);
}
