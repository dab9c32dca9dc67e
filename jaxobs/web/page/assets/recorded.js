// A report: the page with what was recorded inside it, in the place of a process that answers.
const recording = { index: null, number: 0 };
const parsed = (id) => { const node = $(id); return node ? JSON.parse(node.textContent) : null; };

// A field that an event leaves out has the usual value of its kind.
function whole(event) {
  const { pid, process_index } = recording.index.processes[recording.number];
  return { ...recording.index.defaults[event.event], ...event, pid, process_index };
}

function startRecorded() {
  recording.index = parsed("recorded");
  if (!recording.index) return false;
  page.recorded = true;
  document.body.classList.add("recorded");
  $("tile-progress").querySelector("h2").textContent = "Ended";
  $("live").dataset.state = "recorded";
  $("live").title = "made from an event log; this page no longer changes";
  document.querySelector(".tiles").after($("timeline-panel"));
  for (const link of document.querySelectorAll("footer a")) link.remove();
  for (const id of ["observer", "observer-flag"]) show($(id), false);
  for (const id of ["recent-filter", "record"]) show($(id), true);
  $("recent-title").firstChild.textContent = "Compilations ";
  fillChooser();
  drawRecord();
  chooseProcess(firstShown());
  return true;
}

// The process that compiled most: what one makes a report for.
function firstShown() {
  const { processes } = recording.index;
  return processes.reduce((best, each, n) => (each.seconds > processes[best].seconds ? n : best), 0);
}

const nameOfProcess = (each) => [`process ${each.process_index}`, `pid ${each.pid}`, each.hostname, each.program && each.program.split("/").pop(), plural(each.compilations, "compilation"),
  each.exit && each.exit.reason !== "normal" && endedText(each.exit), !each.exit && "no exit recorded"].filter(Boolean).join(" · ");

function fillChooser() {
  const { processes } = recording.index;
  const chooser = $("process");
  show(chooser, processes.length > 1);
  chooser.append(...processes.map((each, n) => h("option", { value: n, text: nameOfProcess(each) })));
  chooser.addEventListener("change", () => chooseProcess(Number(chooser.value)));
}

function chooseProcess(number) {
  const told = parsed(`recorded-${number}`);
  recording.number = number;
  $("process").value = String(number);
  resetFeed();
  for (const list of ["recent", "findings-list"]) keyed($(list), [], String); // numbers and ids are told by other processes as well
  forgetMemory();
  opened.clear();
  Object.assign(timeline, { cause: null, at: null, seen: "", picture: null });
  page.snap = told.snapshot;
  page.marks = told.marks.map(whole);
  document.body.classList.toggle("long", told.compilations.length > 4);
  feed.left = recording.index.processes[number].left_out;
  loadEvents(told.compilations.map((event) => ({ ...whole(event), lookup: event.lookup && whole(event.lookup) })));
  addMemories({ events: told.memory.map(whole) });
  remember(page.snap.devices);
  addActions({ events: page.marks });
  draw();
  drawRecord();
  tellWhenGrouped(recording.index.processes[number].groups_told);
}

// Groups are recorded once a minute: what they add up to may be less than what the last sample saw.
function tellWhenGrouped(time) {
  const column = $("groups").querySelector("th");
  const told = column.querySelector(".told-at") || h("span", { class: "quiet told-at" });
  column.append(told);
  setText(told, time == null ? "" : ` as at ${clock(time)}`);
}

// Who was recorded, from when to when, how it ended; and what the log did not have whole.
function drawRecord() {
  const { source, version, notes } = recording.index;
  const about = recording.index.processes[recording.number];
  const same = new Date(about.first * 1000).toDateString() === new Date(about.last * 1000).toDateString();
  const ended = about.exit ? endedText(about.exit) : "no exit was recorded: it was killed, or was still running when this report was made";
  setText($("live-text"), `recorded · ran ${span(about.last - about.first)}`);
  setText($("record-title"), "Recorded");
  redraw($("record-text"), [recording.number], () => [
    h("span", { class: "num", text: `${moment(about.first)} to ${same ? clock(about.last) : moment(about.last)}` }), " · ",
    h("span", { class: about.exit && about.exit.reason === "normal" ? "" : "ended", text: ended }), " · ", h("code", { text: source }),
    ...notes.map((note) => h("small", {}, ...sentence(note)))]);
  setText($("footer-version"), `Made from ${source} by jaxobs ${version}.`);
  document.title = `${$("program").textContent} · jaxobs report`;
}

function tileEnd() {
  const about = recording.index.processes[recording.number];
  const exit = about.exit;
  $("tile-progress").dataset.state = !exit ? "off" : exit.reason === "normal" ? "" : "bad";
  setText($("progress"), !exit ? "not recorded" : exit.reason === "normal" ? "normally" : exit.detail || exit.reason);
  pieces($("progress-sub"), [`ran ${span(about.last - about.first)}`, `last event ${moment(about.last)}`, exit && exit.code != null && `exit code ${exit.code}`,
    !exit && "killed, or still running"]);
}
