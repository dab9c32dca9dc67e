// The largest groups of live arrays, and the programs that need most: what to look at when memory is short.
const FEW_GROUPS = 8, FEW_PROGRAMS = 6;
let allGroups = false;

// Of the device where the group takes most: its bytes there, and their part of all live arrays there.
function heaviest(group, devices) {
  const [device, size] = Object.entries(group.bytes_per_device).reduce((best, each) => (best && best[1] >= each[1] ? best : each), null) || ["", 0];
  const memory = (devices.find((each) => each.device === device) || {}).memory;
  const whole = memory && ((memory.other_space_bytes || {})[group.memory_kind] ?? memory.live_array_bytes);
  return { device, size, share: whole ? Math.min(1, size / whole) : null };
}

function drawGroups(snap) {
  const groups = byDevice(snap);
  const shown = allGroups ? groups : groups.slice(0, FEW_GROUPS);
  show($("groups"), groups.length > 0);
  setText($("groups-count"), count(groups.length));
  keyed($("groups-rows"), shown, groupKey, makeGroup, (row, group) => updateGroup(row, group, snap));
  show($("groups-more"), groups.length > FEW_GROUPS);
  setText($("groups-more"), allGroups ? "show fewer" : `show ${count(groups.length - FEW_GROUPS)} more`);
  $("groups-more").setAttribute("aria-expanded", String(allGroups));
}

function makeGroup(group) {
  const mark = h("i", { class: "swatch", "aria-hidden": "true" }), number = h("td", { class: "num", "data-label": "arrays" });
  const size = h("td", { class: "num size", "data-label": "a device" }), bar = h("span", { class: "bar meter" }), share = h("span", { class: "num" }), sites = h("div", { class: "sites" });
  const kind = group.memory_kind && group.memory_kind !== "device" ? h("span", { class: "badge", title: "kind of memory", text: group.memory_kind }) : null;
  const marks = h("span", { class: "marks" });
  const node = h("tr", {},
    h("th", { scope: "row" }, h("span", { class: "named" }, mark, h("code", { class: "shape", text: groupName(group) }), kind, marks), h("code", { class: "sharding", title: group.sharding, text: group.sharding }), sites),
    number, size, h("td", { class: "share" }, h("span", { class: "shared" }, bar, share)));
  return { node, mark, marks, number, size, bar, share, sites };
}

function updateGroup(row, group, { devices, findings }) {
  const { device, size, share } = heaviest(group, devices);
  markEvent(row, findings.filter((each) => each.ended == null && each.data.shape && groupKey(each.data) === groupKey(group)));
  const sizes = Object.values(group.bytes_per_device);
  const even = sizes.every((each) => each === size);
  row.mark.style.background = `var(--${hueOf(group)})`;
  setText(row.number, count(group.count));
  redraw(row.size, [size, sizes.length, even, device], () => [bytes(size), h("small", { text: sizes.length < 2 ? device : even ? `on each of ${sizes.length}` : `most, on ${device}` })]);
  setTitle(row.size, `${bytes(sum(group.bytes_per_device))} on all devices of this process in total`);
  stacked(row.bar, [["share", share || 0, hueOf(group)]], 1);
  setText(row.share, share == null ? DASH : percent(share));
  const sites = Object.entries(group.call_sites).sort((a, b) => b[1] - a[1]);
  const looked = sum(group.call_sites);
  setTitle(row.sites, looked ? `of ${plural(looked, "sampled array")}` : "");
  redraw(row.sites, sites, () => sites.slice(0, 3).map(([site, n]) => h("span", { class: "site" }, "created at ", h("code", { title: site, text: site.split("/").slice(-2).join("/") }), copier(site, "call site"), sites.length > 1 ? ` ${percent(n / looked)}` : ""))
    .concat(sites.length > 3 ? [h("span", { text: `and at ${plural(sites.length - 3, "other line")}` })] : []));
}

// Bytes that a call takes beside its arguments: temporaries, and outputs that reuse no argument.
const neededBy = ({ temp, output, alias = 0 }) => (temp == null || output == null ? null : temp + Math.max(0, output - alias));

function drawPrograms(snap) {
  const found = snap.functions.map((fn) => ({ name: fn.name, memory: (programOf(fn) || { memory: {} }).memory }))
    .map((each) => ({ ...each, needed: neededBy(each.memory) })).filter((each) => each.needed != null)
    .sort((a, b) => b.needed - a.needed || (a.name < b.name ? -1 : 1)).slice(0, FEW_PROGRAMS);
  show($("programs"), found.length > 0);
  const whole = Math.max(1, ...found.map(({ memory }) => (memory.argument || 0) + memory.temp + Math.max(0, memory.output - (memory.alias || 0)) + (memory.code || 0)));
  keyed($("programs-rows"), found, (each) => each.name, makeProgram, (row, each) => updateProgramRow(row, each, whole, snap.headroom));
  redraw($("programs-legend"), found.length > 0, () => (found.length ? [["arguments", "memory-live"], ["new outputs", "section-output"], ["temporaries", "memory-gap"], ["code", "memory-code"]].map(([name, colour]) => swatch(name, colour)) : []));
}

function makeProgram(program) {
  const bar = h("span", { class: "bar stack", "aria-hidden": "true" }), needed = h("td", { class: "num needed" }), told = h("span", { class: "unseen" });
  return { node: h("tr", {}, h("th", { scope: "row" }, nameNode(program.name)), needed, h("td", { class: "sections" }, bar, told)), bar, needed, told };
}

function updateProgramRow(row, { memory, needed }, whole, headroom) {
  const parts = [["argument", memory.argument || 0, "memory-live"], ["output", Math.max(0, memory.output - (memory.alias || 0)), "section-output"], ["temp", memory.temp, "memory-gap"], ["code", memory.code || 0, "memory-code"]];
  stacked(row.bar, parts, whole);
  const tight = headroom && needed > headroom.bytes;
  redraw(row.needed, [needed, tight], () => [bytes(needed), tight ? h("small", { class: "slow", title: `More than the ${signed(headroom.bytes)} left on ${headroom.device} now. It may still run: the memory of an earlier call may be free by then.`, text: "more than is left" }) : ""]);
  const text = MEMORY_SECTIONS.filter((section) => memory[section] != null).map((section) => `${SECTION_NAMES[section]} ${bytes(memory[section])}`).join(", ");
  setText(row.told, text);
  setTitle(row.bar.parentElement, text);
}

// Captures of memory and profiles that were asked for, the latest first.
function drawActions() {
  const latest = actions.slice(-3).reverse();
  show($("actions"), latest.length > 0);
  redraw($("actions"), latest.map((each) => each.sequence), () => [h("li", { class: "quiet", text: "Captures" }), ...latest.map((each) => h("li", { "data-result": each.result },
    h("time", { class: "num", datetime: each.time, title: moment(epoch(each.time)), text: when(epoch(each.time)) }),
    ` ${each.name} `, h("span", { class: `badge ${each.result === "done" ? "hit" : "lost"}`, text: each.result }), " ",
    each.path ? h("span", { class: "site" }, h("code", { title: each.path, text: each.path.split("/").slice(-2).join("/") }), copier(each.path, "path")) : null,
    each.bytes == null ? null : h("span", { class: "num quiet", text: ` ${bytes(each.bytes)}` }),
    each.seconds == null ? null : h("span", { class: "num quiet", text: ` in ${seconds(each.seconds)}` }),
    each.detail ? h("span", { class: "quiet" }, ...sentence(each.detail)) : null))]);
}

function drawMemory(snap) {
  drawAccounts(snap);
  drawGroups(snap);
  drawDevices(snap);
  drawPrograms(snap);
  drawActions();
}
