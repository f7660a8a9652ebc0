// The chart of items that are unowned, and of those that move. SPDX-License-Identifier: Apache-2.0
import {isNarrow, shape} from "./dom.js";
import {model, now, time} from "./model.js";
import {ticks} from "./ticks.js";
import {clockText, count, number, whenText} from "./text.js";

const HEIGHT = 96, TOP = 12, AXIS = 20, DATED = 34;

// Where times are on a drawing: the same for the chart and for the lanes below it.
export function scaleOf(svg, {from, to}) {
  const whole = Math.max(240, svg.clientWidth || 900);
  const left = svg.hasAttribute("data-single") ? 8 : isNarrow() ? 72 : 148, width = whole - left - 8;
  const marks = ticks(from, to, Math.max(2, Math.floor(width / 84)), now());
  return {from, to, left, width, whole, ticks: marks, x: (ms) => left + width * (ms - from) / (to - from),
          ms: (x) => from + (to - from) * Math.min(1, Math.max(0, (x - left) / width))};
}

export function prepare(svg, scale, height) {
  svg.replaceChildren();
  const all = height + (scale.ticks.some((tick) => tick.date) ? DATED : AXIS);
  svg.setAttribute("viewBox", `0 0 ${scale.whole} ${all}`);
  svg.setAttribute("height", all);
}

export function drawAxis(svg, scale, height) {
  for (const tick of scale.ticks) {
    const x = scale.x(tick.ms);
    svg.append(shape("line", {class: "axis", x1: x, x2: x, y1: 0, y2: height + 3}));
    const anchor = x > scale.whole - 24 ? "end" : "middle";
    svg.append(shape("text", {class: "tick", x, y: height + 15, "text-anchor": anchor}, tick.text));
    if (tick.date) svg.append(shape("text", {class: "tick date", x, y: height + 28, "text-anchor": anchor}, tick.date));
  }
}

// Marks the time before divvy serve began.
export function drawUnknown(svg, scale, height) {
  if (model.started_ms <= scale.from) return;
  const width = scale.x(Math.min(scale.to, model.started_ms)) - scale.left;
  const text = "before divvy serve began";
  svg.append(shape("rect", {class: "before", x: scale.left, y: 0, width, height}, undefined, text));
  const middle = {class: "tick", x: scale.left + width / 2, y: height / 2 + 4, "text-anchor": "middle"};
  if (width > 170) svg.append(shape("text", middle, text));
}

// Marks the moment of the past that is shown.
export function drawMoment(svg, scale, height) {
  if (time.moment === null || time.moment < scale.from || time.moment > scale.to) return;
  const x = scale.x(time.moment);
  svg.append(shape("line", {class: "moment", x1: x, x2: x, y1: 0, y2: height + 3}),
             shape("path", {class: "moment", d: `M${x - 5} 0h10l-5 7z`}));
}

// The sample that holds at a time; samples are [ms, items, unowned, moving, members], the oldest first.
export function sampleAt(samples, ms) {
  let low = 0, high = samples.length;
  while (low < high) {
    const half = (low + high) >> 1;
    if (samples[half][0] <= ms) low = half + 1;
    else high = half;
  }
  return low ? samples[low - 1] : null;
}

// Those that hold within a time; the first one may have begun before it.
export function samplesIn(samples, {from, to}) {
  const first = samples.findLastIndex((s) => s[0] <= from);
  return samples.slice(Math.max(0, first)).filter((s) => s[0] <= to);
}

const rounded = (most) => {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return [1, 2, 4, 6, 8, 10].map((n) => n * unit).find((n) => n >= most);
};

// The outline of a stacked area: steps along `upper`, and back along `lower`, wherever it is not empty.
function area(samples, scale, end, lower, upper) {
  const outlines = [];
  let there = [], back = [];
  const close = () => {
    if (there.length) outlines.push(`M${there.join("L")}L${back.join("L")}Z`);
    [there, back] = [[], []];
  };
  samples.forEach((sample, i) => {
    if (upper(sample) === lower(sample)) {
      close();
      return;
    }
    const x0 = scale.x(Math.max(scale.from, sample[0])), x1 = Math.max(scale.x(samples[i + 1]?.[0] ?? end), x0 + 1.5);
    there.push(`${x0} ${upper(sample)}`, `${x1} ${upper(sample)}`);
    back.unshift(`${x1} ${lower(sample)}`, `${x0} ${lower(sample)}`);
  });
  close();
  return outlines.join("");
}

function drawLevels(svg, scale, y, most) {
  for (const level of most > 1 ? [0, most / 2, most] : [0, most]) {
    const at = y(level);
    svg.append(shape("line", {class: "axis", x1: scale.left, x2: scale.left + scale.width, y1: at, y2: at}));
    if (!Number.isInteger(level)) continue;
    svg.append(shape("text", {class: "tick", x: scale.left - 8, y: at + 4, "text-anchor": "end"}, number(level)));
  }
}

function hatching() {
  const pattern = shape("pattern", {id: "hatch-moving", width: 6, height: 6, patternUnits: "userSpaceOnUse",
                                    patternTransform: "rotate(45)"});
  pattern.append(shape("rect", {class: "hatch-back", width: 6, height: 6}),
                 shape("rect", {class: "hatch-line", width: 2.5, height: 6}));
  const defs = shape("defs");
  defs.append(pattern);
  return defs;
}

function tell(svg, samples, end) {
  const last = sampleAt(samples, end);
  const most = Math.max(0, ...samples.map((s) => s[2] + s[3]));
  svg.setAttribute("aria-valuetext", last
    ? `${whenText(end, now())}: ${last[2]} unowned and ${last[3]} moving; in this range at most ${most} at a time`
    : "nothing is known of this time");
}

// Draws how many items were unowned, and moving: disjoint, so that they can be stacked. `marks` are changes of the
// plan.
export function drawCounts(svg, samples, range, marks) {
  const scale = scaleOf(svg, range), end = Math.min(range.to, now());
  prepare(svg, scale, HEIGHT);
  svg.append(hatching());
  const within = samplesIn(samples, range);
  const most = rounded(Math.max(1, ...within.map((s) => s[2] + s[3])));
  const y = (n) => HEIGHT - n * (HEIGHT - TOP) / most;
  drawAxis(svg, scale, HEIGHT);
  drawLevels(svg, scale, y, most);
  drawUnknown(svg, scale, HEIGHT);
  if (within.length) {
    svg.append(shape("path", {class: "unowned", d: area(within, scale, end, () => y(0), (s) => y(s[2]))}),
               shape("path", {class: "moving", d: area(within, scale, end, (s) => y(s[2]), (s) => y(s[2] + s[3]))}));
  }
  if (!within.some((s) => s[2] + s[3]) && model.started_ms <= scale.from) {
    const text = within.length ? "no item was unowned or moving in this time" : "nothing is known of this time";
    const middle = {class: "tick", x: scale.left + scale.width / 2, y: HEIGHT / 2, "text-anchor": "middle"};
    svg.append(shape("text", middle, text));
  }
  for (const mark of marks.filter((m) => m.ms >= scale.from && m.ms <= scale.to).slice(-60)) {
    const x = scale.x(mark.ms);
    svg.append(shape("path", {class: "mark", d: `M${x} ${TOP - 4}l4 -4l-4 -4l-4 4z`}, undefined,
                     `${clockText(mark.ms)}: ${mark.text}`));
  }
  drawMoment(svg, scale, HEIGHT);
  svg.setAttribute("aria-valuemin", Math.round(range.from / 1000));
  svg.setAttribute("aria-valuemax", Math.round(range.to / 1000));
  svg.setAttribute("aria-valuenow", Math.round((time.moment ?? range.to) / 1000));
  tell(svg, within, time.moment ?? end);
  return scale;
}

export function readout(samples, ms) {
  const sample = sampleAt(samples, ms);
  if (!sample || ms > now()) return "";
  const [, items, unowned, moving] = sample;
  return `${whenText(ms, now())}: ${number(unowned)} unowned, ${number(moving)} moving of ${count(items, "item")}`;
}
