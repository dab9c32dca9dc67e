// Who is being looked at, and how well jaxobs can see.
function deviceSummary(devices) {
  const kinds = new Map();
  for (const device of devices) kinds.set(device.device_kind, (kinds.get(device.device_kind) || 0) + 1);
  return [...kinds].map(([kind, n]) => (n > 1 ? `${n} × ${kind}` : kind)).join(", ");
}

function dots(node, items) {
  const shown = items.filter((item) => item && item[0]);
  redraw(node, shown, () => shown.map(([text, title, label]) => h("li", { title }, label ? h("span", { class: "quiet", text: `${label} ` }) : null, text)));
}

function drawHeader(snap) {
  const p = snap.process;
  const program = p.program || "JAX process";
  const short = program.startsWith("/") ? program.slice(program.lastIndexOf("/") + 1) : program;
  setText($("program"), short);
  setTitle($("program"), program);
  const devices = deviceSummary(snap.devices);
  dots($("where"), [
    [p.hostname, "host"], [`${p.pid}`, "process id", "pid"],
    [`${p.process_index}/${p.process_count}`, `index ${p.process_index} of ${p.process_count} JAX processes, counted from 0`, "process"],
    [p.platform || (page.recorded ? "" : "no backend yet"), "JAX's default backend"],
    [devices && devices !== p.platform ? devices : "", devices],
  ]);
  const order = ["jax", "jaxlib", "python", "jaxobs"];
  dots($("versions"), order.filter((name) => p.versions[name]).map((name) => [p.versions[name], `${name} ${p.versions[name]}`, name]));
  setText($("footer-version"), `jaxobs ${p.versions.jaxobs || ""}`.trim());
}

function drawFacts(snap) {
  const p = snap.process;
  const facts = [
    ["Program", p.program || DASH], ["Host", p.hostname], ["Process id", String(p.pid)],
    ["JAX process", `index ${p.process_index} of ${p.process_count}`], ["Observed since", moment(p.started)],
    ["Platform", p.platform || (page.recorded ? "" : "not opened by the program yet")],
    ["Devices", deviceSummary(snap.devices) || DASH],
    ["Compilation cache", page.recorded ? (snap.cache.enabled ? "on" : "not used") : snap.cache.directory ? `${snap.cache.directory}${snap.cache.enabled ? "" : " (switched off)"}` : "off: set JAX_COMPILATION_CACHE_DIR to keep programs"],
    ...Object.entries(p.versions).map(([name, version]) => [name, version]),
  ].filter(([, value]) => value);
  redraw($("facts-list"), facts, () => facts.map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { class: "mono", text: value }))));
}

function troubles(observer) {
  const list = [];
  if (!observer.installed) list.push("jaxobs.install() was not called in this process: compilations are not visible.");
  for (const [name, there] of Object.entries(observer.capabilities)) if (!there) list.push(`Not available with this version of JAX: ${spaced(name)}. Figures that need it are missing.`);
  for (const [where, n] of Object.entries(observer.internal_errors)) if (n) list.push(`jaxobs failed ${n === 1 ? "once" : `${count(n)} times`} in ${where}. Your program is unaffected; its log has the first traceback.`);
  for (const [reason, n] of Object.entries(observer.dropped)) if (n) list.push(`Dropped ${count(n)} to stay within limits: ${spaced(reason)}.`);
  return [...list, ...observer.notes];
}

let wasTrouble = false;
function drawObserver(snap) {
  if (page.recorded) return; // a log does not tell how well jaxobs could see
  const o = snap.observer;
  const list = troubles(o);
  const node = $("observer");
  if (list.length && !wasTrouble) node.open = true;
  wasTrouble = list.length > 0;
  node.classList.toggle("warn", wasTrouble);
  setText($("observer-count"), wasTrouble ? `⚠ ${plural(list.length, "remark")}` : "all well");
  show($("observer-flag"), wasTrouble);
  setText($("observer-flag"), `⚠ ${plural(list.length, "remark")}`);
  $("observer-flag").title = list.join("\n");
  const able = Object.entries(o.capabilities).sort();
  redraw($("observer-body"), [list, able, o.collect_seconds], () => [
    list.length ? h("ul", { class: "remarks" }, ...list.map((text) => h("li", { text }))) : null,
    h("dl", {}, h("dt", { text: "Sees" }), h("dd", { class: "abilities" }, ...(able.length ? able.map(([name, there]) => h("span", { class: `badge ${there ? "hit" : "lost"}`, text: `${there ? "✓" : "✗"} ${spaced(name)}` })) : [DASH])),
      h("dt", { text: "Last scrape" }), h("dd", { class: "num", text: o.collect_seconds == null ? "not scraped yet" : seconds(o.collect_seconds) }),
      h("dt", { text: "Own failures" }), h("dd", { class: "num", text: count(sum(o.internal_errors)) }),
      h("dt", { text: "Dropped to stay within limits" }), h("dd", { class: "num", text: count(sum(o.dropped)) })),
  ].filter(Boolean));
}
