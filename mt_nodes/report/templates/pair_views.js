/* SPDX-License-Identifier: Apache-2.0 */
/* Chart of a value of both arms over time; the arrow keys or the pointer show single values. */
function chart(box, { title, x, xName, lines, bands = [], marks = [], picked = null }) {
  const HIGH = 150, LEFT = 56, LOW = 24;
  const values = lines.flatMap((line) => Array.from(line.values)).filter(Number.isFinite);
  if (!values.length) return;
  let [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  if (low === high) { low -= 1; high += 1; }
  const [begin, end] = [x[0], x[x.length - 1]], told = (v) => (Number.isFinite(v) ? String(+v.toPrecision(5)) : "none");
  const output = made("output", { class: "readout" }), figure = made("figure", { class: "chart", tabindex: 0, "aria-label": `${title}; left and right arrow keys show single values` });
  let width = 0, at = Math.max(0, x.indexOf(picked));
  const across = (value) => LEFT + (width - LEFT - 6) * (end > begin ? (value - begin) / (end - begin) : 0.5);
  const down = (value) => 6 + (HIGH - LOW - 6) * (1 - (value - low) / (high - low));

  function way(numbers) {
    let d = "", pen = "M";
    for (let i = 0; i < numbers.length; i++) {
      if (!Number.isFinite(numbers[i])) { pen = "M"; continue; }
      d += `${pen}${across(x[i]).toFixed(1)} ${down(numbers[i]).toFixed(1)}`;
      pen = "L";
    }
    return d;
  }
  /* A dot where there is no neighbour to draw a line to. */
  const lone = (numbers) => [...numbers.keys()].filter((i) => Number.isFinite(numbers[i]) && !Number.isFinite(numbers[i - 1]) && !Number.isFinite(numbers[i + 1]));

  function draw() {
    width = Math.max(260, figure.clientWidth);
    const grey = bands.map(([a, b]) => `<rect class="band" x="${across(a)}" y="6" width="${across(b) - across(a)}" height="${HIGH - LOW - 6}"/>`);
    const curves = lines.map((line) => `<path class="${line.kind}" d="${way(line.values)}"/>` +
      lone(line.values).map((i) => `<circle class="${line.kind}" cx="${across(x[i])}" cy="${down(line.values[i])}" r="2.5"/>`).join(""));
    const crosses = marks.map((i) => `<path class="violated" d="M${across(x[i]) - 4} ${HIGH - LOW - 5}l8 8m0 -8l-8 8"/>`);
    const words = [[high, 14], [low, HIGH - LOW]].map(([value, y]) => `<text x="${LEFT - 6}" y="${y}" text-anchor="end">${told(value)}</text>`);
    const ends = [[begin, LEFT, "start"], [end, width - 6, "end"]].map(([value, place, anchor]) => `<text x="${place}" y="${HIGH - 6}" text-anchor="${anchor}">${told(value)}</text>`);
    const zero = low < 0 && high > 0 ? `<path class="zero" d="M${LEFT} ${down(0)}H${width - 6}"/>` : "";
    frame.innerHTML = `<svg width="${width}" height="${HIGH}" aria-hidden="true">${grey.join("")}${zero}${curves.join("")}${crosses.join("")}${words.join("")}${ends.join("")}<path class="at" d="M${across(x[at])} 6V${HIGH - LOW}"/></svg>`;
    output.textContent = `${xName} ${told(x[at])}: ${lines.map((line) => `${line.name} ${told(line.values[at])}`).join(", ")}`;
  }
  function read(i) { at = Math.max(0, Math.min(x.length - 1, i)); draw(); }
  figure.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) { event.preventDefault(); read(at + by); }
  });
  const frame = made("div");
  frame.addEventListener("pointermove", (event) => {
    const value = begin + (end - begin) * (event.clientX - frame.getBoundingClientRect().left - LEFT) / (width - LEFT - 6);
    let best = 0;
    x.forEach((one, i) => { if (Math.abs(one - value) < Math.abs(x[best] - value)) best = i; });
    read(best);
  });
  const names = lines.map((line) => made("span", { class: line.kind }, line.name));
  figure.append(made("figcaption", {}, `${title} `, ...names, marks.length ? made("span", { class: "violated" }, "violated") : ""), frame, output);
  box.append(figure);
  new ResizeObserver(draw).observe(figure);
}

/* Outputs of both arms over a sequence; grey where the arms settled. */
function seriesView(box, data) {
  const x = Array.from(data.time_s), bands = [];
  for (let i = 1; i < x.length; i++) if (data.stretch[i] !== data.stretch[i - 1]) bands.push([x[i - 1], x[i]]);
  for (const name of data.outputs) {
    const lines = [["source", "source"], ["followup", "follow-up"]].map(([kind, name_]) => ({ kind, name: name_, values: data[`${kind}_${name}`] }));
    chart(box, { title: name.replaceAll("_", " "), x, xName: "time (s)", lines, bands });
  }
}

/* A camera image before and after, one over the other, with the outputs; a slider uncovers the follow-up. */
function cameraView(box, data) {
  const picture = (bytes) => new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.readAsDataURL(new Blob([bytes], { type: "image/jpeg" }));
  });
  const plain = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
  /* The class of each box, or the state of a light. */
  const names = (arm, kind) => data.px_labels[arm].map((label, i) => {
    const [x0, y0, , y1] = data[`${arm}_px`].subarray(4 * i, 4 * i + 4);
    return `<text class="${kind}" x="${x0}" y="${y0 > 20 ? y0 - 5 : y1 + 16}">${plain(label)}</text>`;
  }).join("");
  const boxes = (name, kind) => {
    let text = "";
    for (let at = 0; at < data[name].length; at += 4) {
      const [x0, y0, x1, y1] = data[name].subarray(at, at + 4);
      text += `<rect class="${kind}" x="${x0}" y="${y0}" width="${x1 - x0}" height="${y1 - y0}"/>`;
    }
    return text;
  };
  const way = (name, kind) => {
    let d = "", pen = "M";
    for (let at = 0; at < data[name].length; at += 2) {
      const [x, y] = data[name].subarray(at, at + 2);
      if (!Number.isFinite(x) || !Number.isFinite(y)) { pen = "M"; continue; }
      d += `${pen}${x} ${y}`;
      pen = "L";
    }
    return d && `<path class="${kind}" d="${d}"/>`;
  };
  const over = {
    source: () => boxes("source_px", "source") + names("source", "source") + way("source_lines_px", "source"),
    followup: () => boxes("followup_px", "followup") + names("followup", "followup") + boxes("added_px", "added") + boxes("lost_px", "lost") + boxes("gained_px", "gained")
      + way("followup_lines_px", "followup") + way("expected_lines_px", "source expected"),
  };
  const layer = (arm, name) => {
    const image = made("img", { alt: `Camera image of the ${name}` }), drawn = made("div", { class: "over" }), held = made("div", { class: `layer ${arm}` }, image, drawn);
    image.addEventListener("load", () => { drawn.innerHTML = `<svg viewBox="0 0 ${image.naturalWidth} ${image.naturalHeight}" aria-hidden="true">${over[arm]()}</svg>`; });
    picture(data[`${arm}_image`]).then((uri) => { image.src = uri; });
    return held;
  };
  const after = layer("followup", "follow-up"), stage = made("div", { class: "stage" }, layer("source", "source"), after);
  const slider = made("input", { type: "range", min: 0, max: 100, step: 0.5, value: 50, "aria-label": "share of the follow-up that the source covers" });
  const show = () => { after.style.clipPath = `inset(0 0 0 ${slider.value}%)`; stage.style.setProperty("--edge", `${slider.value}%`); };
  slider.addEventListener("input", show);
  show();
  box.append(stage, made("div", { class: "slider" }, made("span", {}, "source"), slider, made("span", {}, "follow-up")));
  if (!over.source() && !over.followup()) return;
  const drawn = made("input", { type: "checkbox", change: () => stage.classList.toggle("bare", !drawn.checked) });
  drawn.checked = true;
  box.append(made("label", {}, drawn, "show the outputs"));
}
