// Charts of divvy serve's page: pure drawing, into an SVG that is there. SPDX-License-Identifier: Apache-2.0
"use strict";

const SVG = "http://www.w3.org/2000/svg";

// Makes an element of a chart; text and attributes are set, never parsed.
function shape(name, attributes, text, title) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  if (title !== undefined) element.append(shape("title", {}, title));
  return element;
}

function clockText(ms) {
  return new Date(ms).toLocaleTimeString([], {hour12: false});
}

function durationText(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

// One of eight colours for each name, the same on every page.
function colourOf(name) {
  let hash = 0;
  for (const character of name) hash = (hash * 31 + character.codePointAt(0)) >>> 0;
  return `o${hash % 8}`;
}

function fitted(text, pixels) {
  const most = Math.max(0, Math.floor(pixels / 7));
  if (text.length <= most) return text;
  return most > 1 ? `${[...text].slice(0, most - 1).join("")}…` : "";
}

function drawAxis(svg, from, to, left, width, height) {
  const ticks = Math.max(2, Math.floor(width / 160));
  for (let i = 0; i <= ticks; i++) {
    const x = left + width * i / ticks;
    svg.append(shape("line", {class: "axis", x1: x, x2: x, y1: 0, y2: height}));
    const anchor = i === 0 ? "start" : i === ticks ? "end" : "middle";
    svg.append(shape("text", {x, y: height + 15, "text-anchor": anchor}, clockText(from + (to - from) * i / ticks)));
  }
}

// Draws how many items were unowned, and moving, over time. A sample is [ms, items, unowned, moving, members].
function drawCounts(svg, samples, now) {
  const width = svg.clientWidth || 900, height = 90;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height + 20}`);
  svg.setAttribute("height", height + 20);
  if (!samples.length) return;
  const from = Math.min(samples[0][0], now - 60000), most = Math.max(1, ...samples.map((s) => s[2] + s[3]));
  const x = (ms) => width * (ms - from) / (now - from), bar = (count) => count * (height - 14) / most;
  drawAxis(svg, from, now, 0, width, height);
  samples.forEach((sample, i) => {
    const start = x(sample[0]), end = i + 1 < samples.length ? x(samples[i + 1][0]) : width;
    const title = `${clockText(sample[0])}: ${sample[2]} of ${sample[1]} items unowned, ${sample[3]} moving`;
    let y = height;
    for (const [name, count] of [["unowned", sample[2]], ["moving", sample[3]]]) {
      if (!count) continue;
      y -= bar(count);
      svg.append(shape("rect", {class: name, x: start, y, width: Math.max(1.5, end - start), height: bar(count)},
                       undefined, title));
    }
  });
  const last = samples[samples.length - 1];
  const some = samples.some((s) => s[2] + s[3]);
  svg.append(shape("text", {x: 4, y: 11}, some ? `most: ${most.toLocaleString("en")}` : "none in this time"));
  svg.setAttribute("aria-label", `Since ${clockText(from)}: at most ${some ? most : 0} items unowned or moving at a time; ` +
                   `now ${last[2]} unowned and ${last[3]} moving`);
}

// Makes of an item's events, the oldest first, who owned it from when until when; null is nobody.
function spansOf(events, from, now) {
  const spans = [];
  let start = from, owner = events.length ? events[0].from ?? null : null;
  for (const event of events) {
    if (event.ms > start) spans.push({owner, from: start, to: event.ms});
    [start, owner] = [Math.max(start, event.ms), event.to ?? null];
  }
  spans.push({owner, from: start, to: now});
  return spans;
}

function drawSpan(svg, span, x, y) {
  const width = Math.max(1.5, x(span.to) - x(span.from)), who = span.owner === null ? "nobody" : span.owner;
  const title = `${who}, ${clockText(span.from)} to ${clockText(span.to)}, ${durationText(span.to - span.from)}`;
  const colour = span.owner === null ? "gap" : colourOf(span.owner);
  svg.append(shape("rect", {class: colour, x: x(span.from), y: y + 2, width, height: 18, rx: 3}, undefined, title));
  const label = fitted(who, width - 8);
  const kind = span.owner === null ? "gap-text" : "bar-text";
  if (label) svg.append(shape("text", {class: kind, x: x(span.from) + 5, y: y + 15}, label));
}

// Draws a lane for each item: [{name, spans}].
function drawLanes(svg, lanes, from, now) {
  const width = svg.clientWidth || 900, left = lanes.length > 1 ? Math.min(190, width / 4) : 0, height = 26 * lanes.length;
  const x = (ms) => left + (width - left) * (ms - from) / (now - from);
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height + 20}`);
  svg.setAttribute("height", height + 20);
  drawAxis(svg, from, now, left, width - left, height);
  lanes.forEach((lane, i) => {
    if (left) svg.append(shape("text", {class: "name", x: 0, y: 26 * i + 15}, fitted(lane.name, left - 10), lane.name));
    for (const span of lane.spans) drawSpan(svg, span, x, 26 * i);
  });
}
