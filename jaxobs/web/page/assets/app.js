// Asks the process, and draws what it answers. One round at a time: events every second, the snapshot and samples of memory in turn.
const EVERY = 1000, RETRY = 2000, PATIENCE = 8000;
const page = { snap: null, identity: null, since: 0, lookupsSince: 0, memoriesSince: 0, actionsSince: 0, round: 0, failures: 0, contact: null, skew: 0, timer: null, busy: false };

async function ask(what) {
  const answer = await fetch(what, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

async function snapshotRound() {
  const snap = await ask("api/v1/snapshot");
  const p = snap.process;
  const identity = `${p.hostname} ${p.pid} ${p.started}`;
  if (page.identity && page.identity !== identity) startOver(`A new process answers here: pid ${p.pid} instead of ${page.snap.process.pid}. Its figures start from zero.`);
  Object.assign(page, { snap, identity, skew: snap.time - Date.now() / 1000 });
  remember(snap.devices);
}

async function eventsRound() {
  const answer = await ask(`api/v1/events?since=${page.since}&kind=compilation`);
  if (answer.next < page.since || answer.events.some((event) => event.pid !== page.snap.process.pid)) {
    page.round = 0; // another process answered: ask it who it is before its events are shown
    page.since = 0;
    return;
  }
  await lookupsRound();
  page.since = answer.next;
  addEvents(answer);
}

// After the compilations: the lookup of each was told before it, so that none comes late.
async function lookupsRound() {
  if (!cacheOn(page.snap.cache)) return;
  const answer = await ask(`api/v1/events?since=${page.lookupsSince}&kind=cache_lookup`);
  page.lookupsSince = answer.next;
  addLookups(answer);
}

// What is older than the page: the snapshot's own history is thinner, and tells less of each sample.
async function memoryRound() {
  const told = await ask(`api/v1/events?since=${page.memoriesSince}&kind=memory`);
  page.memoriesSince = told.next;
  addMemories(told);
  const done = await ask(`api/v1/events?since=${page.actionsSince}&kind=action`);
  page.actionsSince = done.next;
  addActions(done);
}

function startOver(text) {
  resetFeed();
  forgetMemory();
  opened.clear();
  page.since = page.lookupsSince = page.memoriesSince = page.actionsSince = 0;
  setText($("notice-text"), text);
  show($("notice"), true);
}

async function round() {
  if (page.busy || page.recorded || document.hidden) return;
  page.busy = true;
  clearTimeout(page.timer);
  let first = page.snap == null; // what there is, is shown before all that has happened is asked for
  try {
    if (page.round % 2 === 0 || page.failures) await snapshotRound(); else await memoryRound();
    first = first && page.snap != null;
    if (first) draw();
    page.round += 1;
    await eventsRound();
    page.failures = 0;
    page.contact = Date.now();
  } catch (error) {
    page.failures += 1;
    page.trouble = error.name === "TimeoutError" ? "The process does not answer" : /^status/.test(error.message) ? `The process answers with an error (${error.message})` : "The process is gone";
  } finally {
    page.busy = false;
    if (!document.hidden) page.timer = setTimeout(round, page.failures ? RETRY : EVERY);
  }
  if (!page.failures) draw(); // outside the try: a fault of the page must not pass for one of the process
  drawContact();
}

const now = () => (page.recorded ? page.snap.time : Date.now() / 1000 + page.skew);

function draw() {
  if (!page.snap) return;
  drawHeader(page.snap);
  drawVerdict(page.snap);
  drawOutOfMemory(page.snap);
  drawFindings(page.snap);
  drawTiles(page.snap, now());
  drawSteps(page.snap);
  drawLoops(page.snap);
  drawWall(page.snap);
  drawProfile(page.snap);
  drawInputs(page.snap);
  drawWatched(page.snap);
  drawFunctions(page.snap);
  drawTimeline(page.snap);
  drawFeed(page.snap);
  drawCache(page.snap);
  drawRequests(page.snap);
  drawMemory(page.snap);
  drawAccelerators(page.snap);
  drawFacts(page.snap);
  drawObserver(page.snap);
}

function drawContact() {
  const gone = page.failures >= 2;
  document.body.classList.toggle("stale", gone && page.contact != null);
  show($("gone"), gone);
  const state = gone ? "gone" : page.snap ? "live" : "connecting";
  if ($("live").dataset.state !== state) $("live").dataset.state = state;
  const name = page.snap ? $("program").textContent : "jaxobs";
  document.title = page.snap ? `${gone ? "⚠ gone: " : ""}${name} · jaxobs` : "jaxobs";
  if (gone) {
    setText($("gone-title"), page.contact ? page.trouble : "No answer yet");
    setText($("gone-text"), page.contact
      ? `Last contact at ${when(page.contact / 1000)}. This page shows the values of that time, and resumes when the process is back.`
      : "Nothing answers at this address. This page resumes when something does.");
  }
  drawPulse();
}

// What ticks between two answers.
function drawPulse() {
  if (!page.snap || page.recorded) return;
  const gone = page.failures >= 2;
  setText($("live-text"), gone ? `gone for ${span((Date.now() - page.contact) / 1000)}` : `live · up ${span(now() - page.snap.process.started)}`);
  if (!gone) tileProgress(page.snap, now());
}

$("theme").addEventListener("click", () => { setText($("theme-text"), window.jaxobsTheme.next()); labelTheme(); });
function labelTheme() {
  setText($("theme-text"), window.jaxobsTheme.choice);
  $("theme").setAttribute("aria-label", `Theme: ${window.jaxobsTheme.choice}. Press to change.`);
}
$("filter").addEventListener("input", () => page.snap && drawFunctions(page.snap));
$("eager").addEventListener("change", () => drawFeed(page.snap));
$("recent-filter").addEventListener("input", () => { feed.page = 0; drawFeed(page.snap); });
for (const [id, by] of [["newest", -Infinity], ["newer", -1], ["older", 1], ["oldest", Infinity]]) $(`recent-${id}`).addEventListener("click", () => turnPage(by));
$("findings-more").addEventListener("click", () => { allFindings = !allFindings; drawFindings(page.snap); });
$("functions-more").addEventListener("click", () => { rowsShown += ROWS; drawFunctions(page.snap); });
$("oom-toggle").addEventListener("click", () => { toggleOutOfMemory(page.snap); });
$("groups-more").addEventListener("click", () => { allGroups = !allGroups; drawGroups(page.snap); });
$("memory-order").addEventListener("click", () => { account.byFullness = !(account.byFullness ?? page.snap.devices.length > ROOMY); drawMemory(page.snap); });
$("notice-close").addEventListener("click", () => show($("notice"), false));
document.addEventListener("visibilitychange", () => { if (!document.hidden) { page.round = 0; round(); } else clearTimeout(page.timer); });
window.addEventListener("resize", () => { if (page.snap) { drawSteps(page.snap); drawDevices(page.snap); drawTimeline(page.snap); } });
window.addEventListener("beforeprint", () => { if (page.snap) { drawSteps(page.snap); drawDevices(page.snap); drawTimeline(page.snap); } });
setInterval(() => { if (!document.hidden) drawPulse(); }, 1000);
buildColumns(() => page.snap && drawFunctions(page.snap));
labelTheme();
$("footer-symptoms").append(symptomOf(""));
startTimeline();
if (!startRecorded()) round();
