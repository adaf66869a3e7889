/* SPDX-License-Identifier: Apache-2.0 */
"use strict";
(() => {
  /* In centimetres: how wide a near view is, and how far before the egos its middle lies. */
  const NEAR = 6000, AHEAD = 1500;
  const COLOURS = ["red", "yellow", "green"];
  const sums = (values) => { let sum = 0; return values.map((value) => (sum += value)); };
  const whole = (packed) => sums(sums(packed));
  const between = (values, k, share) => values[k] + share * ((values[k + 1] ?? values[k]) - values[k]);

  function decoded(text) {
    const told = JSON.parse(text);
    const arms = told.arms.map((arm) => ({ t: whole(arm.t), n: arm.n.map(whole) }));
    const bodies = told.bodies.map((b) => b && { arm: b.a, x: whole(b.x), y: whole(b.y), r: whole(b.r) });
    return { ...told, arms, bodies };
  }

  /* The row of an arm before a time, and how far on the way to the next it is; held at the last. */
  function place(times, t) {
    let low = 0, high = times.length - 1;
    if (t >= times[high]) return [high, 0];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle; else high = middle;
    }
    return [low, (t - times[low]) / (times[high] - times[low])];
  }

  function colour(turns, t) {
    let left = t % turns.reduce((sum, turn) => sum + turn[1], 0);
    return turns.find((turn) => (left -= turn[1]) < 0)[0];
  }

  function viewer(box) {
    const one = (name) => box.querySelector(name);
    const all = (name) => [...box.querySelectorAll(name)];
    const top = one(".top"), slider = one(".when"), button = one(".play"), speed = one(".speed"), near = one(".near");
    const wide = top.getAttribute("viewBox").split(" ").map(Number);
    const shapes = new Map(all("[data-body]").map((shape) => [Number(shape.dataset.body), shape]));
    const trails = ["source", "followup"].map((arm) => one(`.trail.ego.${arm}`));
    let drive = null, now = 0, last = null, playing = false;

    function told() {
      if (!drive) {
        drive = decoded(one("script").textContent);
        box.classList.add("live");
      }
      return drive;
    }

    /* What is shown: all, or both egos and some of what lies ahead of the follow-up's. */
    function look() {
      const egos = drive.bodies.slice(0, 2).map((b, i) => b ? pose(b) : start(shapes.get(i)));
      const [left, up, most, high] = wide, turn = egos[1][2] * Math.PI / 180;
      const middle = [Math.cos(turn), Math.sin(turn)].map((ahead, i) => (egos[0][i] + egos[1][i]) / 2 + AHEAD * ahead);
      const apart = Math.max(Math.abs(egos[0][0] - egos[1][0]), Math.abs(egos[0][1] - egos[1][1]) * most / high);
      const width = Math.min(most, NEAR + 1.2 * apart), height = width * high / most;
      const held = (at, low, length) => Math.max(low, Math.min(at, low + length));
      return near.checked
        ? [held(middle[0] - width / 2, left, most - width), held(middle[1] - height / 2, up, high - height), width, height]
        : wide;
    }

    const start = (shape) => shape.getAttribute("transform").match(/-?[\d.]+/g).map(Number);

    function pose(body) {
      const [k, share] = place(drive.arms[body.arm].t, now);
      return [between(body.x, k, share), between(body.y, k, share), between(body.r, k, share) / 10];
    }

    function show(t) {
      told();
      now = Math.max(0, Math.min(drive.end, t));
      drive.bodies.forEach((body, i) => {
        if (!body) return;
        const [x, y, turn] = pose(body);
        shapes.get(i).setAttribute("transform", `translate(${x} ${y}) rotate(${turn})`);
      });
      trails.forEach((trail, i) => trail && trail.setAttribute("d", way(drive.bodies[i])));
      all("[data-light]").forEach((light) => {
        light.classList.remove(...COLOURS);
        light.classList.add(colour(drive.lights[light.dataset.light], now));
      });
      drive.hits.forEach(([, t], i) => one(`[data-hit="${i}"]`).classList.toggle("to-come", now < t));
      tell();
      const frame = look();
      top.setAttribute("viewBox", frame.join(" "));
      top.setAttribute("font-size", frame[2] * 12 / Math.max(200, top.clientWidth));
    }

    function way(body) {
      const [k] = place(drive.arms[body.arm].t, now), [x, y] = pose(body);
      let d = "M";
      for (let i = 0; i <= k; i++) d += `${body.x[i]} ${body.y[i]} `;
      return `${d}${x} ${y}`;
    }

    function tell() {
      slider.value = now;
      one(".clock").textContent = `${(now / 1000).toFixed(1)} s`;
      all(".time-line").forEach((line) => line.setAttribute("transform", `translate(${2000 * now / (drive.end || 1)} 0)`));
      all("[data-now]").forEach((cell) => {
        const [arm, number] = cell.dataset.now.split(" ").map(Number);
        const [k, share] = place(drive.arms[arm].t, now);
        const tenths = Math.round(between(drive.arms[arm].n[number], k, share) / 10) + 0;
        cell.textContent = (tenths / 10).toFixed(1);
        cell.classList.toggle("over", now > drive.arms[arm].t[drive.arms[arm].t.length - 1] + 150);
      });
    }

    function play(on) {
      if (on && told() && now >= drive.end) now = 0;
      playing = on;
      last = null;
      button.setAttribute("aria-label", on ? "Pause" : "Play");
      if (on) requestAnimationFrame(tick);
    }

    function tick(at) {
      if (!playing) return;
      if (last !== null) show(now + (at - last) * Number(speed.value));
      last = at;
      if (now >= drive.end) play(false); else requestAnimationFrame(tick);
    }

    const step = (rows) => { play(false); told(); show(now + rows * (drive.arms[0].t[1] ?? 100)); };
    const faster = (by) => { speed.selectedIndex = Math.max(0, Math.min(speed.length - 1, speed.selectedIndex + by)); };
    const KEYS = {
      " ": () => play(!playing), k: () => play(!playing),
      ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => step(-1e9), End: () => step(1e9),
      "+": () => faster(1), "-": () => faster(-1), v: () => near.click(),
    };
    box.addEventListener("keydown", (event) => {
      const press = KEYS[event.key];
      if (!press || event.ctrlKey || event.metaKey || event.altKey || event.target === speed) return;
      if (event.key === " " && event.target.matches("button, input[type=checkbox]")) return;
      event.preventDefault();
      press();
    });
    button.addEventListener("click", () => play(!playing));
    slider.addEventListener("input", () => { play(false); show(Number(slider.value)); });
    near.addEventListener("change", () => show(now));
    all(".plot").forEach((plot) => plot.addEventListener("pointerdown", (event) => {
      const frame = plot.getBoundingClientRect();
      play(false);
      show(told().end * (event.clientX - frame.left) / frame.width);
    }));
    one(".controls").hidden = false;
    /* On a phone the picture is wider than the screen: begin with the place where it happens. */
    const frame = one(".frame"), there = one(".hit") || one(".body.ego.followup");
    if (there && frame.scrollWidth > frame.clientWidth) {
      frame.scrollLeft += there.getBoundingClientRect().left - frame.getBoundingClientRect().left - frame.clientWidth / 2;
    }
  }

  document.querySelectorAll(".episode:has(.controls)").forEach(viewer);
})();
