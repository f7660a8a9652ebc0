// What was over the time that is shown: the chart and the lanes. SPDX-License-Identifier: Apache-2.0
import {$, unknown} from "./dom.js";
import {drawCounts, readout, sampleAt} from "./chart.js";
import {planChanges} from "./incident.js";
import {drawLanes, itemsOf, spansOf} from "./lanes.js";
import {ask, now, paced, pool, shown, time, view} from "./model.js";
import {choosable, isChoosing} from "./range.js";
import {count, number} from "./text.js";

const SAMPLES_KEPT = 3000, EVENTS_ASKED = 500;
let samples = [], of = -1, events = [], matched = 0, scales = {}, hovered = null, told = () => {};

const lanesMost = () => document.documentElement.clientWidth <= 640 ? 8 : 12;

// ---- samples ----

// Asks for the samples of the range that is shown.
async function askSamples() {
  const asked = view.pool, {from, to} = shown();
  try {
    const answer = await ask("/samples", {pool: asked, from: Math.max(0, Math.round(from)), to: Math.round(to)});
    if (asked !== view.pool) return;
    const last = answer.samples.at(-1)?.[0] ?? 0;
    samples = answer.samples.concat(of === asked && time.end === null ? samples.filter((s) => s[0] > last) : []);
    of = asked;
    $("counts-unknown").replaceChildren();
  } catch (error) {
    if (asked !== view.pool) return;
    if (of !== asked) samples = [];
    of = asked;
    $("counts-unknown").replaceChildren(unknown("How many were unowned and moving is", error));
  }
  drawPast();
  told();
}

// Takes what the stream tells of the pool that is shown.
export function takeSample(ms) {
  const p = pool();
  samples.push([ms, p.items, p.unowned, p.moving, p.members]);
  if (samples.length > SAMPLES_KEPT) samplesSoon();
}

// The figures at the moment that is shown; null where nothing is known.
export const sampleThen = () => time.moment === null ? null : sampleAt(samples, time.moment);

// ---- events ----

async function askEvents() {
  const asked = view.pool, {from, to} = shown();
  const question = {table: "timeline", pool: asked, text: $("text").value, limit: EVENTS_ASKED,
                    from: Math.max(0, Math.round(from)), to: Math.ceil(to)};
  try {
    const answer = await ask("/rows", question);
    if (asked !== view.pool) return;
    [events, matched] = [answer.rows, answer.matched];
    $("lanes-unknown").replaceChildren();
  } catch (error) {
    [events, matched] = [[], 0];
    $("lanes-unknown").replaceChildren(unknown("Who owned what is", error));
  }
  drawLanesNow();
}

export const samplesSoon = paced(askSamples, 500);
export const eventsSoon = paced(askEvents, 1000);

// ---- drawing ----

function drawLanesNow() {
  const range = shown();
  const items = itemsOf(events.filter((event) => event.ms >= range.from && event.ms <= range.to), lanesMost());
  $("lanes").toggleAttribute("hidden", !items.size);
  $("lanes-title").hidden = !items.size;
  if (!items.size) return;
  scales.lanes = drawLanes($("lanes"), [...items].map(([name, of]) => ({name, spans: spansOf(of, range)})), range);
  const rest = matched > events.length ? `, of the newest ${number(events.length)} changes` : "";
  $("lanes-note").textContent = `${count(items.size, "item")} that changed last in this time${rest}`;
  $("lanes").setAttribute("aria-label", `Who owned the ${count(items.size, "item")} that changed last in this time; ` +
    "the table Timeline says the same");
}

function showReadout() {
  const ms = hovered ?? time.moment ?? (time.end === null ? now() : time.end);
  $("readout").textContent = readout(samples, ms);
}

// Draws both, unless somebody chooses a range on them right now.
export function drawPast() {
  if (!pool() || isChoosing()) return;
  scales.counts = drawCounts($("counts"), samples, shown(), planChanges());
  drawLanesNow();
  showReadout();
}

// Lets both be chosen on. `action` is called when samples have come.
export function makePast(action) {
  told = action;
  choosable($("counts"), () => scales.counts, (ms) => {
    hovered = ms;
    showReadout();
  });
  choosable($("lanes"), () => scales.lanes);
}

// Forgets what was told of another pool.
export function forgetPast() {
  [samples, of, events, matched] = [[], -1, [], 0];
}
