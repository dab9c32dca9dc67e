// Device time: what the latest samples of the profiler say, one bar of the devices' time and the largest operations.
const MOST_OPERATIONS = 8;
const KINDS = {
  matmul: "phase-compile", convolution: "time-checkpoint", elementwise: "time-step", reduce: "time-eval", copy: "time-input_wait",
  collective: "phase-cache_load", transfer: "time-transfer", custom: "phase-lower", control: "phase-trace", other: "time-init",
};

function profileParts(samples) {
  const parts = {};
  const add = (name, value) => { parts[name] = (parts[name] || 0) + value; };
  for (const { functions, idle } of samples) {
    functions.forEach((each) => Object.entries(each.seconds).forEach(([kind, value]) => add(kind, value)));
    idle.forEach((each) => add(`idle: ${each.reason}`, each.seconds));
  }
  const isIdle = (name) => !KINDS[name];
  return Object.entries(parts).filter(([, value]) => value > 0).sort((a, b) => isIdle(a[0]) - isIdle(b[0]) || b[1] - a[1]);
}

function profileOperations(samples) {
  const found = new Map();
  for (const each of samples.flatMap((sample) => sample.operations)) {
    const key = `${each.function} ${each.operation}`;
    found.set(key, { ...each, device_seconds: each.device_seconds + (found.has(key) ? found.get(key).device_seconds : 0) });
  }
  return [...found].sort((a, b) => b[1].device_seconds - a[1].device_seconds).slice(0, MOST_OPERATIONS);
}

function drawProfile(snap) {
  const samples = (snap.profile && snap.profile.latest) || [];
  show($("profile"), samples.length > 0);
  if (!samples.length) return;
  const parts = profileParts(samples);
  const total = sum(Object.fromEntries(parts)) || 1;
  const busy = samples.flatMap((each) => Object.values(each.busy));
  const exposed = sum(samples.map((each) => each.exposed_seconds || 0));
  setText($("profile-busy"), busy.length ? `${percent(sum(busy) / busy.length)} busy` : "");
  pieces($("profile-told"), [plural(samples.length, "sample"), `${seconds(sum(samples.map((each) => each.window_seconds)))} recorded`, exposed > 0 && `exposed exchanges: ${percent(exposed / total)}`]);
  stacked($("profile-bar"), parts.map(([name, value]) => [name, value, KINDS[name] || "time-idle"]), total);
  redraw($("profile-legend"), parts, () => parts.map(([name, value]) => {
    const item = swatch(spaced(name), KINDS[name] || "time-idle");
    item.dataset.part = name;
    item.append(h("b", { class: "num", text: ` ${percent(value / total)}` }));
    return item;
  }));
  keyed($("profile-rows"), profileOperations(samples), ([key]) => key, makeOperation, ({ cells }, [, each]) => {
    setText(cells.kind, each.category);
    setText(cells.share, percent(each.device_seconds / total));
    setText(cells.bound, each.bound === "unknown" ? DASH : each.bound);
    setText(cells.source, each.source || DASH);
  });
}

function makeOperation([, each]) {
  const cells = {};
  const cell = (name, label, css) => (cells[name] = h("td", { class: css, "data-label": label }));
  const node = h("tr", { "data-operation": each.operation }, h("th", { scope: "row" }, h("span", { class: "mono", text: each.scope || each.operation }), h("small", { text: ` ${each.function}` })),
    cell("share", "of the devices' time", "num"), cell("kind", "kind"), cell("bound", "bound by"), cell("source", "source", "mono"));
  return { node, cells };
}
