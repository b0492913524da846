"use strict";

// The numbers of all chapters, as Python computed them; see the files beside this one.
const tour = JSON.parse(document.getElementById("data").textContent);
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

// How each bound is drawn: in a colour of tour.css and, for those who cannot tell colours apart,
// with dashes of its own.
const DASHES = { CMM: "", DMM: "8 3", AMM: "2 3", AY: "10 3 2 3", IGP: "5 5", FixedDesign: "1 4" };
const COLOURS = ["one", "two", "three", "four", "five", "six"];

// ---- elements

function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Text with **important** parts, as nodes. */
function said(text) {
  return text.split("**").map((part, i) => (i % 2 ? make("b", {}, part) : part));
}

// ---- numbers

/** A number with about three digits, and a proper minus sign. */
function written(value) {
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.995 || size === 0 ? 2 : 3;
  return value.toFixed(digits).replace("-", "−");
}

/** An upper bound, rounded up, so that what is said of it stays true. */
function roundedUp(value) {
  const unit = value >= 100 ? 1 : value >= 10 ? 0.1 : value >= 1 ? 0.01 : 0.001;
  return written(Math.ceil(value / unit - 1e-9) * unit);
}

function percent(share) {
  // A band that misses the truth somewhere must not be rounded to one that does not.
  return `${share < 1 ? Math.min(99, Math.floor(100 * share)) : 100} %`;
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Round numbers from low to high, about `count` of them. */
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Powers of ten, with 2 and 5 times them. */
function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    for (const factor of [1, 2, 5]) found.push(Number((factor * 10 ** power).toPrecision(3)));
  }
  return found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
}

// ---- plots

/** A picture with axes that fits its column; `paint` draws into it, again whenever that changes. */
class Plot {
  constructor(options, paint) {
    Object.assign(this, { height: 320, log: [false, false], left: 44, right: 12 }, options);
    this.paint = paint;
    this.svg = draw("svg", { class: "plot", role: "img" });
    this.figure = make("figure", {}, this.svg, make("figcaption", {}, this.caption));
    new ResizeObserver(() => this.redraw()).observe(this.figure);
  }

  redraw() {
    const width = Math.max(this.figure.clientWidth, 200);
    const height = Math.round(Math.min(this.height, Math.max(width * 0.8, 250)));
    this.box = { left: this.left, right: width - this.right, top: 10, bottom: height - 38 };
    this.x = this.scale(this.across, this.box.left, this.box.right, this.log[0]);
    this.y = this.scale(this.up, this.box.bottom, this.box.top, this.log[1]);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    this.axes(width, height);
    // An inner svg clips what is outside of the axes.
    const { left, right, top, bottom } = this.box;
    this.inner = draw("svg", { x: 0, y: 0, width, height: bottom, overflow: "hidden" });
    this.svg.append(this.inner);
    this.paint(this);
    this.svg.append(draw("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    this.svg.append(draw("line", { class: "axis", x1: left, x2: left, y1: top, y2: bottom }));
  }

  scale([low, high], from, to, log) {
    const place = log ? Math.log : (value) => value;
    const factor = (to - from) / (place(high) - place(low));
    return (value) => from + factor * (place(Math.max(value, log ? 1e-300 : -Infinity)) - place(low));
  }

  axes(width, height) {
    const { left, right, bottom } = this.box;
    const every = (range, log, count) => (log ? logTicks(...range) : ticks(...range, count));
    for (const value of every(this.up, this.log[1], height / 55)) {
      if (value < (this.lowest ?? -Infinity)) continue;
      const y = this.y(value);
      this.svg.append(
        draw("line", { class: "rule", x1: left, x2: right, y1: y, y2: y }),
        draw("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, String(value).replace("-", "−")));
    }
    for (const value of every(this.across, this.log[0], width / 90)) {
      this.svg.append(draw("text", { x: this.x(value), y: bottom + 16, "text-anchor": "middle" }, String(value)));
    }
    this.svg.append(draw("text", { x: (left + right) / 2, y: bottom + 33, "text-anchor": "middle" }, this.xName));
  }

  describe(words) {
    this.svg.setAttribute("aria-label", words);
  }

  add(tag, attributes, colour, ...children) {
    const element = draw(tag, attributes, ...children);
    if (colour) element.style.setProperty("--colour", `var(--${colour})`);
    this.inner.append(element);
    return element;
  }

  places(xs, ys) {
    return xs.map((x, i) => `${this.x(x).toFixed(1)},${this.y(ys[i]).toFixed(1)}`);
  }

  line(xs, ys, colour, kind = "", dashes = "") {
    this.add("path", { class: `curve ${kind}`, d: `M${this.places(xs, ys).join("L")}`, "stroke-dasharray": dashes }, colour);
  }

  band(xs, lower, upper, colour) {
    const outline = [...this.places(xs, upper), ...this.places(xs, lower).reverse()];
    this.add("path", { class: "band", d: `M${outline.join("L")}Z` }, colour);
  }

  dot(x, y, kind = "", colour = "", r = 3.2) {
    this.add("circle", { class: `dot ${kind}`, cx: this.x(x), cy: this.y(y), r }, colour);
  }

  /** A line across the picture at a height, or from top to bottom at a place. */
  level(value, colour, kind = "") {
    const y = this.y(value);
    this.add("line", { class: `mark ${kind}`, x1: this.box.left, x2: this.box.right, y1: y, y2: y }, colour);
  }

  place(value, colour, kind = "") {
    const x = this.x(value);
    this.add("line", { class: `mark ${kind}`, x1: x, x2: x, y1: this.box.top, y2: this.box.bottom }, colour);
  }

  /** Names beside the right ends of lines, moved apart where they would meet. */
  names(ends) {
    let below = -Infinity;
    for (const { name, y, colour } of ends.map((end) => ({ ...end, y: this.y(end.value) })).sort((a, b) => a.y - b.y)) {
      below = Math.max(y + 4, below + 14, this.box.top + 8);
      this.add("text", { class: "named", x: this.box.right + 5, y: below }, colour, name);
    }
  }
}

// ---- controls

let labels = 0;

/** A slider over positions 0..count - 1 or any range; `text` is what it stands at. */
function slider({ label, min = 0, max, step = 1, value, text }, change) {
  const id = `slider-${labels += 1}`;
  const input = make("input", { type: "range", id, min, max, step, value });
  const output = make("output", { for: id });
  const show = () => {
    output.textContent = text(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => { show(); change(); });
  show();
  return {
    element: make("div", { class: "control" }, make("label", { for: id }, label, output), input),
    get value() { return Number(input.value); },
    set value(number) { input.value = number; show(); change(); },
    get atEnd() { return Number(input.value) >= max; },
    input,
  };
}

/** Checkboxes or radio buttons, in a group with a name. */
function choice({ type, legend, options }, change) {
  const name = `choice-${labels += 1}`;
  const inputs = options.map(({ value, checked }) => {
    const input = make("input", { type, name, value });
    input.checked = checked;
    input.addEventListener("change", change);
    return input;
  });
  const shown = options.map(({ text, colour, dashes }, i) =>
    make("label", {}, inputs[i], ...(colour ? [swatch(colour, dashes)] : []), text));
  return {
    element: make("fieldset", {}, make("legend", {}, legend), make("div", { class: "options" }, ...shown)),
    get chosen() { return inputs.filter((input) => input.checked).map((input) => input.value); },
  };
}

function swatch(colour, dashes) {
  const line = draw("line", { class: "curve", x1: 0, x2: 22, y1: 5, y2: 5, "stroke-dasharray": dashes });
  line.style.setProperty("--colour", `var(--${colour})`);
  return draw("svg", { class: "swatch", viewBox: "0 0 22 10", "aria-hidden": "true" }, line);
}

/** Plays a slider from where it is, or from the start; one step at a time for those who want it calm. */
function player(target, milliseconds) {
  const button = make("button", { type: "button" }, calm ? "Next step" : "Play");
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
  };
  const next = () => {
    target.value += 1;
    if (target.atEnd && timer) stop();
  };
  target.input.addEventListener("input", () => { if (timer) stop(); });  // the user took over
  button.addEventListener("click", () => {
    if (timer) return stop();
    if (target.atEnd) target.value = 0;
    if (calm) return next();
    button.textContent = "Pause";
    timer = setInterval(next, milliseconds);
  });
  return button;
}

/** Controls, pictures, a sentence on what is seen and, folded away, the numbers in a table. */
function chapter(id, { controls, plots, columns = 1, headings }) {
  const says = make("p", { class: "says", role: "status" });
  const body = make("tbody");
  const head = make("thead", {}, make("tr", {}, ...headings.map((text) => make("th", { scope: "col" }, text))));
  const name = document.querySelector(`#${id} h2`).textContent;
  const table = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Numbers: ${name}` },
    make("table", {}, head, body));
  const pictures = make("div", { class: "plots" }, ...plots.map((plot) => plot.figure));
  pictures.style.setProperty("--columns", columns);
  document.querySelector(`#${id} .chapter`).append(
    make("div", { class: "controls" }, ...controls), pictures, says,
    make("details", {}, make("summary", {}, "The numbers as a table"), table));
  return ({ words, rows }) => {
    for (const plot of plots) plot.redraw();
    says.replaceChildren(...said(words));
    plots[0].describe(words.replaceAll("**", ""));
    body.replaceChildren(...rows.map(([first, ...rest]) => make("tr", {}, make("th", { scope: "row" }, first),
      ...rest.map((cell) => make("td", Number.isNaN(Number.parseFloat(cell.replace("−", "-"))) ? { class: "text" } : {}, cell)))));
  };
}

// ---- 1: what a norm bound admits

function norms({ x, families, largest, first }) {
  const bound = slider({ label: "B, the limit", min: 0.5, max: largest, step: 0.5, value: first, text: written }, update);
  const pace = choice({
    type: "radio",
    legend: "Curves may turn",
    options: families.map(({ name }, i) => ({ value: i, text: name, checked: i === 1 })),
  }, update);
  const scaled = () => families[pace.chosen[0]].functions.map((values) => values.map((value) => value * bound.value));
  const plot = new Plot({
    across: [0, 1], up: [-largest, largest], xName: "setting x",
    caption: "Six curves with norm B; the shaded area is from −B to B.",
  }, (p) => {
    p.band([0, 1], [-bound.value, -bound.value], [bound.value, bound.value], "area");
    scaled().forEach((values, i) => p.line(x, values, COLOURS[i]));
  });
  const show = chapter("norms", { controls: [bound.element, pace.element], plots: [plot], headings: ["curve", "lowest", "highest", "range"] });
  function update() {
    const ends = scaled().map((values) => [Math.min(...values), Math.max(...values)]);
    const widest = Math.max(...ends.map(([low, high]) => high - low));
    const [low, high] = [Math.min(...ends.flat()), Math.max(...ends.flat())];
    show({
      words: `With B = **${written(bound.value)}** every curve stays between **−${written(bound.value)}** and **${written(bound.value)}**. ` +
        `These six have values between ${written(low)} and ${written(high)}, and the one that varies most spans ${written(widest)}.`,
      rows: ends.map(([from, to], i) => [`curve ${i + 1}`, written(from), written(to), written(to - from)]),
    });
  }
  update();
}

// ---- 2: the bands of all bounds

function bands({ x, truth, points, outcomes, counts, bounds, norm_bound: limit }) {
  const seen = slider({
    label: "Measurements", max: counts.length - 1, value: Math.min(7, counts.length - 1), text: (at) => String(counts[at]),
  }, update);
  const methods = choice({
    type: "checkbox",
    legend: "Bands",
    options: bounds.map(({ id, shown }) => ({ value: id, text: id, checked: shown, colour: id, dashes: DASHES[id] })),
  }, update);
  const frames = () => bounds.filter(({ id }) => methods.chosen.includes(id)).map((one) => ({ ...one, ...one.frames[seen.value] }));
  const plot = new Plot({
    across: [0, 1], up: [-1.08 * limit, 1.08 * limit], height: 360, xName: "setting x",
    caption: "Dashed: the true curve, which the methods do not see. Dots: measurements.",
  }, (p) => {
    for (const { id, lower, upper } of frames().reverse()) {
      p.band(x, lower, upper, id);
      p.line(x, lower, id, "", DASHES[id]);
      p.line(x, upper, id, "", DASHES[id]);
    }
    p.line(x, truth, "", "truth");
    points.slice(0, counts[seen.value]).forEach((place, i) => p.dot(place, outcomes[i]));
  });
  const show = chapter("bands", {
    controls: [seen.element, player(seen, 700), methods.element], plots: [plot],
    headings: ["band", "mean width", "times CMM", "curve inside", "what it is"],
  });
  function update() {
    const count = counts[seen.value];
    const all = bounds.map((one) => ({ ...one, ...one.frames[seen.value] }));
    const shown = frames().map(({ id, width }) => `**${id} ${written(width)}**`);
    show({
      words: `After ${plural(count, "measurement")}, mean widths: ${shown.join(", ") || "no band is chosen"}. ` +
        (count ? "" : "Without any, all that is known is that the curve stays within ±B. ") +
        (frames().every(({ inside }) => inside === 1) ? "The true curve is inside everywhere." : "The true curve is outside somewhere."),
      rows: all.map(({ id, width, inside, about }) =>
        [id, written(width), `${(width / all[0].width).toFixed(2)} ×`, percent(inside), about]),
    });
  }
  update();
}

// ---- 3: a race

function race({ x, values, rounds, games, methods }) {
  const round = slider({ label: "Round", min: 0, max: rounds, value: rounds, text: String }, update);
  const best = values.indexOf(Math.max(...values));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  // Below the curve there is a row of tries for each player.
  const rows = methods.map((_, i) => low - (high - low) * (0.16 + 0.13 * i));
  const tries = new Plot({
    across: [0, 1], up: [rows.at(-1) - 0.08 * (high - low), high + 0.08 * (high - low)], lowest: low,
    height: 360, xName: "setting x",
    caption: "The curve of one game and, below it, where each player has tried so far.",
  }, (p) => {
    p.line(x, values, "", "truth");
    p.place(x[best], "AY");
    methods.forEach(({ id, played }, i) => {
      const y = p.y(rows[i]);
      played.slice(0, round.value).forEach((at, t) => p.add("line", {
        class: t === round.value - 1 ? "try new" : "try", x1: p.x(x[at]), x2: p.x(x[at]), y1: y - 6, y2: y + 6,
      }, id));
      p.add("text", { class: "named", x: 2, y: y + 4 }, id, id);
    });
  });
  const highest = Math.max(...methods.map(({ regret }) => regret.at(-1)));
  const regrets = new Plot({
    across: [0, rounds], up: [0, 1.05 * highest], height: 360, right: 42, xName: "round",
    caption: `Regret so far: the mean of ${plural(games, "game")}.`,
  }, (p) => {
    const all = Array.from({ length: rounds + 1 }, (_, t) => t);
    for (const { id, regret } of methods) {
      p.line(all, [0, ...regret], id, "faint");
      p.line(all.slice(0, round.value + 1), [0, ...regret], id, "", DASHES[id]);
    }
    p.place(round.value, "soft");
    p.names(methods.map(({ id, regret }) => ({ name: id, colour: id, value: regret.at(-1) })));
  });
  const show = chapter("race", {
    controls: [round.element, player(round, 60)], plots: [tries, regrets], columns: 2,
    headings: ["player", "regret so far", "tries in this game", "of them next to the best place"],
  });
  function update() {
    const t = round.value;
    const now = methods.map(({ id, regret, played }) => ({
      id, regret: t ? regret[t - 1] : 0, hits: played.slice(0, t).filter((at) => Math.abs(x[at] - x[best]) < 0.0201).length,
    }));
    const [winner, ...others] = [...now].sort((a, b) => a.regret - b.regret);
    const last = others.at(-1);
    show({
      words: t
        ? `After ${plural(t, "round")}, **${winner.id}** has the least regret, **${written(winner.regret)}**, and ${last.id} the most, **${written(last.regret)}**.`
        : "Before the first round nobody has paid anything. Move the slider, or play.",
      rows: now.map(({ id, regret, hits }) => [id, written(regret), String(t), `${hits}`]),
    });
    regrets.describe(`Regret after ${plural(t, "round")}: ${now.map(({ id, regret }) => `${id} ${written(regret)}`).join(", ")}.`);
  }
  update();
}

// ---- 4: a certificate

function closing({ x, truth, points, outcomes, frames, norm_bound: limit }) {
  const last = frames.length - 1;
  const round = slider({ label: "Round", max: last, value: Math.min(6, last), text: String }, update);
  const picture = new Plot({
    across: [0, 1], up: [-1.12 * limit, 1.12 * limit], height: 380, xName: "setting x",
    caption: "The band, the measurements, and in orange the gap between what is sure and what is possible.",
  }, (p) => {
    const { lower, upper, best, sure, limit: most } = frames[round.value];
    p.band(x, lower, upper, "CMM");
    p.line(x, lower, "CMM");
    p.line(x, upper, "CMM");
    p.line(x, truth, "", "truth");
    if (round.value) {
      const [left, right] = [p.box.left, p.box.right];
      p.add("rect", { class: "gap", x: left, width: right - left, y: p.y(most), height: p.y(sure) - p.y(most) });
      p.level(most, "AY", "firm");
      p.level(sure, "CMM", "firm");
      p.place(best, "CMM");
      // On the side where the best place is not.
      const [at, anchor] = best < 0.5 ? [right - 6, "end"] : [left + 6, "start"];
      p.add("text", { class: "said", x: at, y: p.y(most) - 6, "text-anchor": anchor }, "", "possible at most");
      p.add("text", { class: "said", x: at, y: p.y(sure) + 15, "text-anchor": anchor }, "", "sure at the best place known");
    }
    points.slice(0, round.value).forEach((place, i) =>
      p.dot(place, outcomes[i], i === round.value - 1 ? "new" : "", "", i === round.value - 1 ? 5 : 3.2));
  });
  const regrets = frames.map(({ regret }) => regret);
  const known = regrets.slice(1);
  const curve = new Plot({
    across: [0, last], up: [Math.min(...known) / 1.3, Math.max(...known) * 1.3], log: [false, true], height: 210,
    xName: "round", caption: "Certified regret after each round, on a logarithmic scale.",
  }, (p) => {
    p.line(known.map((_, i) => i + 1), known, "CMM");
    if (round.value) p.dot(round.value, regrets[round.value], "own", "CMM", 5);
  });
  const show = chapter("closing", {
    controls: [round.element, player(round, 500)], plots: [picture, curve],
    headings: ["round", "best place known", "sure of", "possible at most", "certified regret", "true regret"],
  });
  function update() {
    const { best, sure, limit: most, regret, true_regret: truly } = frames[round.value];
    show({
      words: round.value
        ? `After ${plural(round.value, "round")} the best place known is x = **${written(best)}**: at most **${roundedUp(regret)}** below the best possible. ` +
          `The gap in the picture is ${roundedUp(most - sure)}` +
          (regret < 0.99 * (most - sure) ? "; no curve is at both ends of it at once, and that brings it down. " : ". ") +
          `In truth the place falls ${written(truly)} short.`
        : "Before the first round nothing is known but B. Move the slider, or play.",
      rows: frames.slice(1).map((one, i) =>
        [String(i + 1), written(one.best), written(one.sure), written(one.limit), roundedUp(one.regret), written(one.true_regret)]),
    });
    curve.describe(`Certified regret, from ${roundedUp(known[0])} after the first round to ${roundedUp(known.at(-1))} after round ${last}.`);
  }
  update();
}

// ---- 5: a plan

function plan({ counts, curves, unit, output }) {
  const widths = curves.flatMap((one) => one.half_width);
  // The slider goes through halves of per cents evenly in their logarithms, from wide to narrow.
  const [low, high] = [Math.min(...widths), Math.min(50, Math.max(...widths))];
  const aims = Array.from({ length: 25 }, (_, i) => Number((high * (low / high) ** (i / 24)).toPrecision(2)));
  const aim = slider({ label: "I want to know it within", max: 24, value: 14, text: (at) => `± ${aims[at]} ${unit}` }, update);
  const TIMES = ["never", "once", "twice"];
  const turns = choice({
    type: "radio",
    legend: `The ${output.split(" ")[0]} may turn`,
    options: curves.map((one, i) => ({ value: i, text: TIMES[one.turns], checked: i === 1, colour: COLOURS[i], dashes: "" })),
  }, update);
  /** Between two numbers of experiments that were computed, as if the curve were straight there. */
  const needed = (half_width) => {
    const at = half_width.findIndex((width) => width <= aims[aim.value]);
    if (at <= 0) return at === 0 ? counts[0] : null;
    const share = Math.log(half_width[at - 1] / aims[aim.value]) / Math.log(half_width[at - 1] / half_width[at]);
    return Math.ceil(counts[at - 1] * (counts[at] / counts[at - 1]) ** share);
  };
  const plot = new Plot({
    across: [counts[0], counts.at(-1)], up: [low / 1.15, Math.max(...widths) * 1.1], log: [true, true],
    xName: "experiments", caption: `Half-width of the band of the ${output}, at most; both axes are logarithmic.`,
  }, (p) => {
    curves.forEach((one, i) => p.line(counts, one.half_width, COLOURS[i], String(i) === turns.chosen[0] ? "" : "faint"));
    const one = curves[turns.chosen[0]];
    const count = needed(one.half_width);
    p.level(aims[aim.value], "soft");
    if (count === null) return;
    p.place(count, "soft");
    p.dot(count, aims[aim.value], "own", COLOURS[turns.chosen[0]], 5);
  });
  const show = chapter("plan", {
    controls: [aim.element, turns.element], plots: [plot],
    headings: ["experiments", ...curves.map((one) => `± ${unit}, if it turns ${TIMES[one.turns]}`)],
  });
  function update() {
    const one = curves[turns.chosen[0]];
    const count = needed(one.half_width);
    show({
      words: (count === null
        ? `A band of ± ${aims[aim.value]} ${unit} takes **more than ${counts.at(-1)}** experiments`
        : `A band of ± ${aims[aim.value]} ${unit} takes **about ${plural(count, "experiment")}**, spread evenly`) +
        `, if the yield turns ${TIMES[one.turns] === "never" ? "nowhere" : `at most ${TIMES[one.turns]}`}.`,
      rows: counts.map((n, i) => [String(n), ...curves.map(({ half_width: width }) => roundedUp(width[i]))]),
    });
  }
  update();
}

for (const place of document.querySelectorAll("[data-value]")) {
  place.textContent = place.dataset.value.split(".").reduce((within, key) => within[key], tour);
}
norms(tour.norms);
bands(tour.bands);
race(tour.race);
closing(tour.closing);
plan(tour.plan);
