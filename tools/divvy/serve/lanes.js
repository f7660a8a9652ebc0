// Who owned which item, as lanes over time. SPDX-License-Identifier: Apache-2.0
import {drawAxis, drawMoment, drawUnknown, prepare, scaleOf} from "./chart.js";
import {colour, HUES} from "./colours.js";
import {shape} from "./dom.js";
import {model, now} from "./model.js";
import {durationText, middle, whenText} from "./text.js";

const LANE = 24;

export const isOfItem = (r) => r.kind === "item" || (r.kind === "restarted" && r.to !== undefined);

// The items of the newest events, at most so many: name -> its events, the oldest first.
export function itemsOf(events, most) {
  const items = new Map();
  for (const event of events) { // the newest first
    if (!isOfItem(event)) continue;
    if (!items.has(event.what) && items.size < most) items.set(event.what, []);
    items.get(event.what)?.unshift(event);
  }
  return items;
}

// Makes of an item's events, the oldest first, who owned it from when until when; null is nobody.
export function spansOf(events, {from, to}) {
  const spans = [];
  let start = Math.max(from, model.started_ms), owner = events.length ? events[0].from ?? null : null;
  for (const event of events) {
    if (event.ms > to) break;
    if (event.ms > start) spans.push({owner, from: start, to: event.ms});
    [start, owner] = [Math.max(start, event.ms), event.to ?? null];
  }
  const end = Math.min(to, now());
  if (end > start) spans.push({owner, from: start, to: end});
  return spans;
}

function pattern(id, look) {
  const hue = look % HUES, kind = Math.floor(look / HUES);
  const turn = kind === 1 ? "rotate(45)" : kind === 2 ? "rotate(-45)" : "rotate(0)";
  const made = shape("pattern", {id, width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: turn});
  made.append(shape("rect", {class: `o${hue}`, width: 8, height: 8}));
  if (kind === 3) made.append(shape("circle", {class: "weave", cx: 4, cy: 4, r: 1.6}));
  else made.append(shape("rect", {class: "weave", width: 2, height: 8}));
  return made;
}

// Sets how a bar is filled: by a colour, or by a pattern in it.
function fill(svg, rect, look, used) {
  if (look < HUES) {
    rect.setAttribute("class", `bar o${look}`);
    return;
  }
  const id = `${svg.id}-look-${look}`;
  used.set(id, look);
  rect.setAttribute("class", "bar");
  rect.setAttribute("fill", `url(#${id})`);
}

function drawSpan(svg, span, scale, y, looks, used) {
  const left = scale.x(Math.max(span.from, scale.from)), width = Math.max(1.5, scale.x(span.to) - left);
  const who = span.owner ?? "nobody";
  const [from, to] = [whenText(span.from, now()), whenText(span.to, now())];
  const title = `${who}, ${from} to ${to}, ${durationText(span.to - span.from)}`;
  const look = looks.get(span.owner) ?? 0;
  const rect = shape("rect", {x: left, y: y + 2, width, height: LANE - 5, rx: 3}, undefined, title);
  if (span.owner === null) rect.setAttribute("class", "gap");
  else fill(svg, rect, look, used);
  rect.dataset.owner = span.owner ?? "";
  svg.append(rect);
  const most = Math.floor((width - 10) / 7.2);
  if (most < Math.min(5, who.length)) return;
  const kind = span.owner === null ? "gap-text" : `bar-text t${look % HUES}`;
  svg.append(shape("text", {class: kind, x: left + 5, y: y + 15}, middle(who, most)));
}

// Draws a lane for each item: [{name, spans}].
export function drawLanes(svg, lanes, range) {
  const scale = scaleOf(svg, range), height = LANE * lanes.length, used = new Map();
  const looks = colour(lanes.map((lane) => lane.spans.map((s) => s.owner).filter((owner) => owner !== null)));
  prepare(svg, scale, height);
  const defs = shape("defs");
  svg.append(defs);
  drawAxis(svg, scale, height);
  drawUnknown(svg, scale, height);
  lanes.forEach((lane, i) => {
    const most = Math.floor((scale.left - 10) / 6.9);
    const place = {class: "name", x: 0, y: LANE * i + 15};
    if (lane.name) svg.append(shape("text", place, middle(lane.name, most), lane.name));
    for (const span of lane.spans) drawSpan(svg, span, scale, LANE * i, looks, used);
  });
  for (const [id, look] of used) defs.append(pattern(id, look));
  drawMoment(svg, scale, height);
  return scale;
}
