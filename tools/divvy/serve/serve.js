// The page of divvy serve: shows what it is told, and asks for nothing but that. SPDX-License-Identifier: Apache-2.0
import {$, element, growAges, onNarrow} from "./dom.js";
import {makeHeat, redrawHeat, showHeat} from "./heat.js";
import * as incident from "./incident.js";
import {makeItem, showItem} from "./item.js";
import {ask, model, paced, pool, readAddress, shown, time, view, writeAddress} from "./model.js";
import * as past from "./past.js";
import {makePools, redrawPools, showPools} from "./pools.js";
import {makeRange, showMoment, showTime} from "./range.js";
import {showFigures, showState} from "./summary.js";
import * as tables from "./tables.js";

const FINDINGS_MS = 5000, HEAT_MS = 3000, POOLS_MS = 5000;
let heatSeen = false, begun = false, wanted = null, waiting = null, round = 0;

// ---- what is asked for, and how often at most ----

const findingsSoon = paced(async () => {
  if (!pool()) return;
  await incident.showFindings();
  showState(incident.findings());
}, FINDINGS_MS);
const holdupsSoon = paced(async () => pool() && incident.showHoldups(), 2000);
const changesSoon = paced(async () => {
  if (!pool()) return;
  if (await incident.showChanges()) setTimeout(changesSoon, FINDINGS_MS);
  past.drawPast();
}, 2000);
const heatAgain = paced(showHeat, HEAT_MS);
const heatSoon = () => pool() && heatSeen && heatAgain();
const poolsSoon = paced(async () => { await showPools(); }, POOLS_MS);

// ---- showing ----

function showSummary() {
  if (!pool()) return;
  showState(incident.findings());
  showFigures(past.sampleThen());
  tables.showTabCounts();
}

function showPoolNames() {
  $("pool").replaceChildren(...model.pools.map((p, i) => element("option", {value: i}, p.path)));
  $("pool").value = view.pool;
  $("pool-label").hidden = !model.pools.length;
  $("since").textContent = `Looked at since ${new Date(model.started_ms).toLocaleString("en-GB")}. ` +
    `Locks and registry: below ${model.root}. Figures for Prometheus: /metrics.`;
}

function askAll() {
  findingsSoon();
  holdupsSoon();
  changesSoon();
  heatSoon();
  past.samplesSoon();
  past.eventsSoon();
}

function choosePool(number) {
  if (number === view.pool || !model.pools[number]) return;
  view.pool = number;
  view.offset = 0;
  view.owner = "";
  $("pool").value = number;
  incident.forgetIncident();
  past.forgetPast();
  writeAddress();
  showSummary();
  past.drawPast();
  redrawPools();
  tables.choose(view.tab);
  askAll();
}

// Is called when another time is shown.
function showOtherTime() {
  view.offset = 0;
  past.drawPast();
  showSummary();
  incident.redrawIncident();
  past.samplesSoon();
  past.eventsSoon();
  tables.reload();
}

// ---- changes ----

function takePool(change) {
  const p = model.pools[change.pool];
  if (!p) return; // An event says that there are more pools, and the state is read again.
  const before = p.generation;
  Object.assign(p, change.figures, {read: true});
  if (model.pools.length > 1) poolsSoon();
  if (change.pool !== view.pool) return;
  past.takeSample(change.ms);
  showSummary();
  if (!document.hidden) past.drawPast();
  tables.takeChange(change);
  if (p.generation !== before || change.figures.planned_ms !== undefined) changesSoon();
  if (change.events && time.end === null) past.eventsSoon();
  if (change.items || change.items_changed || change.gone || change.members_changed) heatSoon();
  holdupsSoon();
}

function take(text) {
  const change = JSON.parse(text);
  if (change.pool !== undefined) {
    takePool(change);
    return;
  }
  Object.assign(model, change);
  if (change.pool_count > model.pools.length) {
    beginAgain().catch(() => {});
    return;
  }
  showSummary();
  tables.takeRest();
}

async function firstPool() {
  if (begun) return;
  begun = true;
  const named = model.pools.findIndex((p) => p.path === wanted);
  const worst = await showPools();
  view.pool = named >= 0 ? named : worst;
}

async function begin() {
  const state = await ask("/state");
  Object.assign(model, state);
  model.offset_ms = state.now_ms - Date.now();
  await firstPool();
  view.pool = Math.max(0, Math.min(view.pool, model.pools.length - 1));
  showPoolNames();
  showTime();
  if (model.pools.length > 1) poolsSoon();
  if (!pool()) {
    $("state").textContent = "No pool has been found yet.";
    incident.redrawIncident();
    return;
  }
  showSummary();
  incident.redrawIncident();
  past.drawPast();
  await tables.reload();
  askAll();
}

function showConnection(text) {
  model.connected = !text;
  $("live").textContent = text || "connected";
  $("live").hidden = !text;
}

// Reads the state. Events that come before it wait, and are taken if the state is older.
async function beginAgain() {
  const mine = ++round;
  waiting = [];
  try {
    await begin();
  } finally {
    const events = mine === round ? waiting : [];
    if (mine === round) waiting = null;
    for (const event of events) if (Number(event.lastEventId) > model.sequence) take(event.data);
  }
}

function listen() {
  const stream = new EventSource("/events");
  stream.addEventListener("open", async () => {
    try {
      await beginAgain();
      showConnection("");
    } catch {
      showConnection("not read");
    }
  });
  stream.addEventListener("message", (event) => waiting ? waiting.push(event) : take(event.data));
  stream.addEventListener("error", () => {
    showConnection("not connected, trying again: what is shown is of before");
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  });
}

// ---- the whole ----

function redraw() {
  past.drawPast();
  redrawHeat();
}

function readAgain() {
  const {tab, path} = readAddress();
  const named = model.pools.findIndex((p) => p.path === path);
  if (named >= 0) choosePool(named);
  tables.choose(tab);
  showTime();
  showOtherTime();
}

// Draws what grows with time: each second where a second can be seen, otherwise less often.
function tick() {
  if (document.hidden) return;
  growAges();
  showTime();
  const {from, to} = shown();
  const second = Math.round(Date.now() / 1000);
  if (time.end === null && second % Math.max(1, Math.min(10, Math.round((to - from) / 300000))) === 0) past.drawPast();
  if (model.connected && second % 5 === 0) findingsSoon();
}

const told = readAddress();
wanted = told.path;
makeRange(showOtherTime);
makeItem();
makePools(choosePool);
makeHeat(tables.showItemsOf);
incident.makeIncident({item: showItem, member: tables.showItemsOf, moment: (ms) => showMoment(ms)});
tables.makeTables({item: showItem, member: tables.showItemsOf, filtered: past.eventsSoon});
past.makePast(() => showSummary());
tables.choose(told.tab);
$("pool").addEventListener("change", () => choosePool(Number($("pool").value)));
new IntersectionObserver((entries) => {
  heatSeen = entries.at(-1).isIntersecting;
  if (heatSeen) heatSoon();
}).observe($("heat"));
new ResizeObserver(redraw).observe($("counts"));
window.addEventListener("hashchange", readAgain);
document.addEventListener("visibilitychange", () => document.hidden || past.drawPast());
onNarrow(() => {
  incident.redrawIncident();
  tables.reload();
  redrawPools();
  redraw();
});
setInterval(tick, 1000);
listen();
