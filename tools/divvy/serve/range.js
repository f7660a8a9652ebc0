// The time that is shown: its controls, and how it is chosen on a drawing. SPDX-License-Identifier: Apache-2.0
import {$, button, shape} from "./dom.js";
import {LIFE_MIN, model, now, RANGES, shown, SPAN_MIN, time, writeAddress} from "./model.js";
import {durationText, momentText} from "./text.js";

const DRAG_PIXELS = 6;
let changed = () => {}, preset = 300000;

// ---- changes of the time ----

function settle() {
  if (time.moment !== null && time.moment >= now()) time.moment = null;
  if (time.end !== null && time.end >= now() && time.moment === null) time.end = null;
  writeAddress();
  showTime();
  changed();
}

export function backToNow() {
  Object.assign(time, {span: preset, end: null, moment: null});
  settle();
}

// Shows the pool at a moment, in the middle of the range where there is room.
export function showMoment(ms) {
  const {from, to} = shown(), inside = ms >= from && ms <= to;
  time.moment = Math.min(ms, now() - 1);
  if (!inside) time.end = Math.min(now(), ms + (to - from) / 2);
  else if (time.end === null) time.end = to;
  settle();
}

// Shows the time between two ends, and the pool at the later one.
function showBetween(from, to) {
  if (to - from < SPAN_MIN) from = to - SPAN_MIN;
  Object.assign(time, {span: to - from, end: to, moment: Math.min(to, now() - 1)});
  settle();
}

function setSpan(span) {
  if (time.moment !== null) time.end = Math.min(now(), time.moment + (span || (shown().to - shown().from)) / 2);
  if (span === 0) time.end = time.moment === null ? null : now();
  time.span = preset = span;
  settle();
}

// Shows half or twice as much, around the moment, or up to now.
function zoom(factor) {
  const {from, to} = shown(), whole = now() - model.started_ms;
  const span = Math.min(Math.max(SPAN_MIN, (to - from) * factor), Math.max(LIFE_MIN, whole));
  if (time.end !== null) time.end = Math.min(now(), (time.moment ?? to) + span / 2);
  time.span = span;
  settle();
}

// Goes a part of the range back or forward.
function step(part) {
  const {from, to} = shown();
  const ms = (time.moment ?? to) + part * (to - from);
  if (ms >= now()) backToNow();
  else showMoment(Math.max(ms, model.started_ms));
}

// ---- what is told of it ----

// Keeps the field for a moment as the moment is, unless somebody writes in it.
function showMomentAsked(then) {
  const field = $("range-at");
  if (field === document.activeElement) return;
  field.value = then ? localText(time.moment) : "";
  field.classList.toggle("set", then);
}

// Shows which range is chosen, and says clearly when it is not now.
export function showTime() {
  const then = time.moment !== null, {from, to} = shown();
  for (const range of RANGES) $(`range-${range.id}`).setAttribute("aria-pressed", String(range.span === time.span));
  $("range-now").setAttribute("aria-pressed", String(!then && time.end === null));
  $("range-shown").textContent = durationText(to - from);
  $("moment").hidden = !then;
  showMomentAsked(then);
  document.body.classList.toggle("then", then);
  if (then) {
    const text = `You look at ${momentText(time.moment)}, ${durationText(now() - time.moment)} ago – not at now.`;
    if ($("moment-text").textContent !== text) $("moment-text").textContent = text;
  }
}

// ---- choosing on a drawing ----

function select(svg, scale, a, b) {
  let box = svg.querySelector(".selection");
  if (!box) svg.append(box = shape("rect", {class: "selection", y: 0}));
  const [x0, x1] = [a, b].sort((p, q) => p - q).map((x) => Math.min(scale.left + scale.width, Math.max(scale.left, x)));
  box.setAttribute("x", x0);
  box.setAttribute("width", Math.max(0, x1 - x0));
  box.setAttribute("height", svg.viewBox.baseVal.height);
}

// Lets a range be chosen on a drawing: by dragging over it, or a moment by a click. `scaleNow` returns its scale.
export function choosable(svg, scaleNow, hover = () => {}) {
  let start = null, pointer = null;
  const place = (event) => event.clientX - svg.getBoundingClientRect().left;
  const end = () => {
    svg.querySelector(".selection")?.remove();
    start = pointer = null;
  };
  svg.addEventListener("pointerdown", (event) => {
    const scale = scaleNow();
    if (event.button || !scale || place(event) < scale.left) return;
    [start, pointer] = [place(event), event.pointerId];
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    const scale = scaleNow();
    if (!scale) return;
    hover(scale.ms(place(event)));
    if (start !== null && event.pointerId === pointer) select(svg, scale, start, place(event));
  });
  svg.addEventListener("pointerup", (event) => {
    if (start === null || event.pointerId !== pointer) return;
    const scale = scaleNow(), [a, b] = [start, place(event)];
    end();
    const [from, to] = [a, b].sort((p, q) => p - q).map(scale.ms);
    if (Math.abs(a - b) >= DRAG_PIXELS) showBetween(from, Math.min(now(), to));
    else showMoment(scale.ms(a));
  });
  svg.addEventListener("pointercancel", end);
  svg.addEventListener("pointerleave", () => hover(null));
}

export const isChoosing = () => document.querySelector(".selection") !== null;

const keys = {"+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => step(-0.05),
              ArrowRight: () => step(0.05), PageUp: () => step(-0.5), PageDown: () => step(0.5),
              Home: () => showMoment(model.started_ms), End: backToNow, Escape: backToNow};

// ---- the controls ----

function localText(ms) {
  const at = new Date(ms - new Date(ms).getTimezoneOffset() * 60000);
  return at.toISOString().slice(0, 19);
}

// Makes the buttons. `action` is called when another time is shown.
export function makeRange(action) {
  changed = action;
  preset = RANGES.find((range) => range.span === time.span)?.span ?? preset;
  for (const range of RANGES) {
    const made = button(range.title, () => setSpan(range.span), "", {id: `range-${range.id}`, "aria-pressed": "false"});
    $("range-buttons").append(made);
  }
  $("range-now").addEventListener("click", backToNow);
  $("moment-now").addEventListener("click", backToNow);
  $("range-back").addEventListener("click", () => step(-0.5));
  $("range-forward").addEventListener("click", () => step(0.5));
  $("range-in").addEventListener("click", () => zoom(0.5));
  $("range-out").addEventListener("click", () => zoom(2));
  $("range-at").addEventListener("focus", () => {
    if (!$("range-at").value) $("range-at").value = localText(time.moment ?? now());
  });
  $("range-at").addEventListener("change", () => {
    const ms = new Date($("range-at").value).getTime();
    if (ms > 0) showMoment(ms);
  });
  $("counts").addEventListener("keydown", (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
