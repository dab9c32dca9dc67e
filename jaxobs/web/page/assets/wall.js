// Where the time went: one bar of the process's seconds, or of its run's, in the order of what they are worth.
const GONE = ["down", "redone"];
const wallColour = (name) => ({ trace: "phase-trace", compile: "phase-compile", cache_load: "phase-cache_load" })[name] || `time-${name}`;
const WALL_NAMES = { redone: "repeated steps", down: "no process running" };

function wallParts(time) {
  const told = time.run || time;
  const parts = Object.fromEntries(TIME_CATEGORIES.map((name) => [name, told.seconds[name] || 0]));
  const again = time.run ? Math.min(time.run.redone_seconds || 0, parts.step) : 0;
  parts.step -= again;
  const order = ["step", ...Object.keys(time.lost).filter((name) => name !== "step")];
  return order.map((name) => [name, name === "redone" ? again : GONE.includes(name) ? time.run.down_seconds : parts[name]]).filter(([, value]) => value > 0);
}

function drawWall(snap) {
  const time = snap.wall;
  show($("wall"), time != null);
  if (!time) return;
  const parts = wallParts(time);
  const total = parts.reduce((all, [, value]) => all + value, 0) || 1;
  const good = time.run ? time.run.goodput : time.goodput;
  const whole = time.run ? time.run.wall_seconds : time.wall_seconds;
  setText($("wall-goodput"), good == null ? "" : `goodput ${percent(good)}`);
  setTitle($("wall-goodput"), "Share of the time that went into steps that were not lost");
  const run = time.run && [`run ${time.run.id}`, `attempt ${count(time.run.attempt)}`,
    time.run.redone_seconds == null ? "no checkpoint seen" : time.run.unsaved_steps > 0 && `${plural(time.run.unsaved_steps, "step")} (${seconds(time.run.unsaved_seconds)}) since the last checkpoint`];
  pieces($("wall-told"), [`${span(whole)} in total`, `${page.recorded ? "at last" : "now"}: ${spaced(time.category)}`, ...(run || []), ...hostWork(snap)]);
  stacked($("wall-bar"), parts.map(([name, value]) => [name, value, wallColour(name)]), total);
  redraw($("wall-legend"), parts.map(([name, value]) => [name, seconds(value)]), () => parts.map(([name, value]) => {
    const item = swatch(WALL_NAMES[name] || spaced(name), wallColour(name));
    item.dataset.category = name;
    item.append(h("b", { class: "num", text: ` ${seconds(value)}` }), h("span", { class: "num quiet", text: ` ${percent(value / total)}` }));
    return item;
  }));
  drawLines((snap.loops || []).flatMap((loop) => loop.lines || [])); // a recorded page may be older
}

// What compiled programs call back in a step, and the garbage collector's pauses where they take a hundredth of it.
function hostWork(snap) {
  const each = snap.verdict?.account?.each_step || {}; // a recorded page may be older
  const least = 0.01 * Math.max(0, ...(snap.loops || []).map((loop) => loop.mean_seconds || 0));
  const told = (name, spent, words, bound) => each[spent] > bound && `${Number(each[name].toPrecision(3))} ${words} in a step (${seconds(each[spent])})`;
  return [told("callbacks", "callback_seconds", "callbacks", 0), told("pauses", "pause_seconds", "garbage collections", least)];
}

// A bar of the share of the time for each line that took much of it.
function drawLines(lines) {
  for (const id of ["wall-by-line", "wall-lines"]) show($(id), lines.length > 0);
  redraw($("wall-lines"), lines, () => lines.map(({ line, category, seconds: spent, share }) => {
    const bar = h("div", { class: "bar", "aria-hidden": "true" });
    stacked(bar, [[category, share, wallColour(category)]], 1);
    return h("li", { "data-line": line }, h("span", { class: "mono", title: line, text: placeOf(line) }), bar,
      h("b", { class: "num", text: seconds(spent) }), h("span", { class: "num quiet", text: percent(share) }), h("span", { text: spaced(category) }));
  }));
}
