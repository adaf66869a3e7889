/* SPDX-License-Identifier: Apache-2.0 */
/* A point cloud before and after, in 3D: WebGL if available, else a plain canvas. */
const cloudView = (() => {
  const COLOURS = {
    kept: [0.72, 0.75, 0.78], removed: [0.94, 0.45, 0.12], added: [0.91, 0.56, 0.76], source: [0.34, 0.71, 0.91],
    followup: [0.95, 0.68, 0.1], lost: [1, 0.35, 0.05], gained: [0.1, 0.8, 0.58], zone: [1, 1, 1], ring: [0.25, 0.29, 0.33],
  };
  const GROUND = [0.07, 0.085, 0.1];
  /* What each picture shows. */
  const PICTURES = {
    both: [["ring", "kept", "removed", "added", "zone", "source", "followup", "lost", "gained"]],
    source: [["ring", "kept", "removed", "zone", "source", "lost"]],
    followup: [["ring", "kept", "added", "zone", "followup", "lost", "gained"]],
    beside: [["ring", "kept", "removed", "zone", "source", "lost"], ["ring", "kept", "added", "zone", "followup", "lost", "gained"]],
  };

  function points(data, name) {
    const from = data[name], to = new Float32Array(from.length);
    for (let i = 0; i < from.length; i++) to[i] = data.origin_m[i % 3] + data.step_m * from[i];
    return to;
  }

  /* Edges of boxes x y z length width height yaw, a little larger, and a stroke from each middle to its front. */
  function edges(boxes, larger) {
    const lines = [];
    for (let at = 0; at < boxes.length; at += 7) {
      const [x, y, z, ...size] = boxes.subarray(at, at + 6), yaw = boxes[at + 6], c = Math.cos(yaw), s = Math.sin(yaw);
      const [l, w, h] = size.map((metres) => metres + larger);
      const corner = (i, j, k) => [x + c * i * l - s * j * w, y + s * i * l + c * j * w, z + k * h];
      for (const a of [-0.5, 0.5]) for (const b of [-0.5, 0.5]) {
        lines.push(...corner(a, b, -0.5), ...corner(a, b, 0.5), ...corner(a, -0.5, b), ...corner(a, 0.5, b));
        lines.push(...corner(-0.5, a, b), ...corner(0.5, a, b));
      }
      lines.push(...corner(0, 0, 0.5), ...corner(0.5, 0, 0.5));
    }
    return lines;
  }

  function outline(corners) {
    const lines = [];
    for (let at = 0; at < corners.length; at += 2) {
      const next = (at + 2) % corners.length;
      lines.push(corners[at], corners[at + 1], 0, corners[next], corners[next + 1], 0);
    }
    return lines;
  }

  /* Lines one after the other, not-a-number between two. */
  function strokes(places) {
    const lines = [];
    for (let at = 0; at + 3 < places.length; at += 2) {
      const piece = places.subarray(at, at + 4);
      if (piece.every(Number.isFinite)) lines.push(piece[0], piece[1], 0, piece[2], piece[3], 0);
    }
    return lines;
  }

  function crosses(places) {
    const lines = [];
    for (let at = 0; at < places.length; at += 2) {
      const [x, y] = [places[at], places[at + 1]];
      for (const [i, j] of [[1, 1], [1, -1]]) lines.push(x - i, y - j, 0.2, x + i, y + j, 2.2, x - i, y - j, 2.2, x + i, y + j, 0.2);
      lines.push(x, y, 0, x, y, 4);
    }
    return lines;
  }

  /* Circles every 10 m around the origin, and an arrow ahead. */
  function rings() {
    const lines = [0, 0, 0, 3, 0, 0, 3, 0, 0, 2.2, 0.6, 0, 3, 0, 0, 2.2, -0.6, 0];
    for (let r = 10; r <= 80; r += 10) for (let i = 0; i < 96; i++) for (const k of [i, i + 1]) {
      lines.push(r * Math.cos(k * Math.PI / 48), r * Math.sin(k * Math.PI / 48), 0);
    }
    return lines;
  }

  function layers(data) {
    const line = (places) => ({ lines: true, places: Float32Array.from(places) });
    const made = { ring: line(rings()), zone: line([...outline(data.region), ...outline(data.keep)]) };
    /* Boxes of both arms at the same place are both visible. */
    for (const [arm, larger] of [["source", 0], ["followup", 0.12]]) made[arm] = line([...edges(data[`${arm}_boxes`], larger), ...strokes(data[`${arm}_lines`]), ...strokes(data[`${arm}_occupied`])]);
    for (const what of ["lost", "gained"]) made[what] = line(crosses(data[`${what}_at`]));
    for (const what of ["kept", "removed", "added"]) {
      const places = points(data, what);
      made[what] = { lines: false, places, size: what === "kept" ? 1.5 : places.length < 30000 ? 3.5 : 2 };
    }
    return made;
  }

  /* Columns of projection times view of a camera that looks at a place from afar. */
  function matrix(eye, wide) {
    const { yaw, pitch, far, at } = eye, cp = Math.cos(pitch), sp = Math.sin(pitch), cy = Math.cos(yaw), sy = Math.sin(yaw);
    const back = [-cp * cy, -cp * sy, sp], right = [sy, -cy, 0], up = [sp * cy, sp * sy, cp];
    const place = at.map((value, i) => value + far * back[i]);
    const shift = (axis) => -(axis[0] * place[0] + axis[1] * place[1] + axis[2] * place[2]);
    const near = 0.1, end = 2000, f = 1 / Math.tan(0.42), m = [];
    for (let i = 0; i < 4; i++) {
      const [r, u, b] = i < 3 ? [right[i], up[i], back[i]] : [shift(right), shift(up), shift(back)];
      m.push((f / wide) * r, f * u, ((end + near) * b + (i === 3 ? 2 * end * near : 0)) / (near - end), -b);
    }
    return new Float32Array(m);
  }

  function shader(gl, kind, text) {
    const made = gl.createShader(kind);
    gl.shaderSource(made, text);
    gl.compileShader(made);
    return made;
  }

  function webgl(canvas, shown) {
    const gl = canvas.getContext("webgl", { antialias: true });
    if (!gl) return null;
    const program = gl.createProgram();
    gl.attachShader(program, shader(gl, gl.VERTEX_SHADER, `attribute vec3 p; uniform mat4 m; uniform float size, ramp;
      uniform vec3 colour; varying vec3 c;
      void main() { gl_Position = m * vec4(p, 1.0); gl_PointSize = size;
        c = colour * mix(1.0, clamp(0.45 + 0.25 * (p.z + 0.5), 0.35, 1.0), ramp); }`));
    gl.attachShader(program, shader(gl, gl.FRAGMENT_SHADER,
      "precision mediump float; varying vec3 c; void main() { gl_FragColor = vec4(c, 1.0); }"));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
    gl.useProgram(program);
    const place = gl.getAttribLocation(program, "p"), at = (name) => gl.getUniformLocation(program, name);
    const [m, size, ramp, colour] = ["m", "size", "ramp", "colour"].map(at);
    for (const layer of Object.values(shown)) {
      layer.buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, layer.buffer);
      gl.bufferData(gl.ARRAY_BUFFER, layer.places, gl.STATIC_DRAW);
    }
    gl.enableVertexAttribArray(place);
    gl.enable(gl.DEPTH_TEST);
    return {
      by: "webgl",
      begin() { gl.viewport(0, 0, canvas.width, canvas.height); gl.clearColor(...GROUND, 1); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT); },
      draw(names, view, left, width, scale) {
        gl.viewport(left, 0, width, canvas.height);
        gl.uniformMatrix4fv(m, false, view);
        for (const name of names) {
          const layer = shown[name];
          gl.uniform3fv(colour, COLOURS[name]);
          gl.uniform1f(size, (layer.size ?? 1) * scale);
          gl.uniform1f(ramp, name === "kept" ? 1 : 0);
          gl.bindBuffer(gl.ARRAY_BUFFER, layer.buffer);
          gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 0, 0);
          gl.drawArrays(layer.lines ? gl.LINES : gl.POINTS, 0, layer.places.length / 3);
        }
      },
      end() { gl.getExtension("WEBGL_lose_context")?.loseContext(); },
    };
  }

  function plain(canvas, shown) {
    const pen = canvas.getContext("2d");
    const css = (rgb) => `rgb(${rgb.map((v) => Math.round(255 * v)).join(" ")})`;
    return {
      by: "plain",
      begin() { pen.fillStyle = css(GROUND); pen.fillRect(0, 0, canvas.width, canvas.height); },
      draw(names, view, left, width, scale) {
        const high = canvas.height;
        const seen = (p, i) => {
          const [x, y, z] = [p[i], p[i + 1], p[i + 2]], row = (k) => view[k] * x + view[4 + k] * y + view[8 + k] * z + view[12 + k];
          const w = row(3);
          return w < 0.1 ? null : [left + width * (0.5 + row(0) / w / 2), high * (0.5 - row(1) / w / 2)];
        };
        pen.save();
        pen.beginPath();
        pen.rect(left, 0, width, high);
        pen.clip();
        for (const name of names) {
          const { places, lines, size } = shown[name];
          pen.fillStyle = pen.strokeStyle = css(COLOURS[name]);
          pen.lineWidth = 1.5 * scale;
          pen.beginPath();
          for (let i = 0; i < places.length; i += lines ? 6 : 3) {
            const a = seen(places, i), b = lines && seen(places, i + 3);
            if (a && b) { pen.moveTo(...a); pen.lineTo(...b); }
            if (a && !lines) pen.fillRect(a[0], a[1], size * scale, size * scale);
          }
          pen.stroke();
        }
        pen.restore();
      },
      end() {},
    };
  }

  /* Adds a cloud view to a box; returns a function that frees it. */
  return (box, data) => {
    const blank = () => made("canvas", { tabindex: 0, role: "img", "aria-label": "Both point clouds: arrow keys or dragging turn the view, with shift they move it, plus, minus or the wheel zoom, 0 resets the view" });
    const shown = layers(data);
    let canvas = blank(), screen = webgl(canvas, shown);
    if (!screen) {
      canvas = blank();
      screen = plain(canvas, shown);
    }
    canvas.dataset.drawn = screen.by;
    const [x0, x1, y0, y1] = data.window;
    const start = { yaw: 0, pitch: 0.85, far: 0.95 * Math.max(x1 - x0, y1 - y0), at: [(x0 + x1) / 2, (y0 + y1) / 2, 0] };
    let eye = start, picture = "both", asked = 0;

    function draw() {
      asked = 0;
      const scale = window.devicePixelRatio || 1, views = PICTURES[picture];
      canvas.width = Math.max(1, Math.round(canvas.clientWidth * scale));
      canvas.height = Math.max(1, Math.round(canvas.clientHeight * scale));
      screen.begin();
      const width = Math.floor(canvas.width / views.length);
      views.forEach((names, i) => screen.draw(names, matrix(eye, width / canvas.height), i * width, width, scale));
    }
    const soon = () => { asked ||= requestAnimationFrame(draw); };
    function look(change) { eye = { ...eye, ...change }; soon(); }
    function turn(yaw, pitch) { look({ yaw: eye.yaw + yaw, pitch: Math.max(-0.2, Math.min(1.57, eye.pitch + pitch)) }); }
    const zoom = (times) => look({ far: Math.max(2, Math.min(400, eye.far * times)) });
    function move(aside, ahead) {
      const c = Math.cos(eye.yaw), s = Math.sin(eye.yaw), m = eye.far / 600;
      look({ at: [eye.at[0] + m * (ahead * c + aside * s), eye.at[1] + m * (ahead * s - aside * c), 0] });
    }
    const KEYS = {
      ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1],
    };
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const way = KEYS[event.key];
      if (way && event.shiftKey) move(-30 * way[0], 30 * way[1]);
      else if (way) turn(0.1 * way[0], 0.1 * way[1]);
      else if (event.key === "+" || event.key === "=") zoom(0.85);
      else if (event.key === "-") zoom(1 / 0.85);
      else if (event.key === "0") look(start);
      else return;
      event.preventDefault();
    });
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); canvas.focus({ preventScroll: true }); });
    canvas.addEventListener("pointermove", (event) => {
      if (!canvas.hasPointerCapture(event.pointerId)) return;
      if (event.shiftKey || event.buttons === 2) move(-event.movementX, event.movementY);
      else turn(-0.006 * event.movementX, 0.006 * event.movementY);
    });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas) return;
      event.preventDefault();
      zoom(Math.exp(0.001 * event.deltaY));
    }, { passive: false });

    const names = { both: "both together", beside: "side by side", source: "source", followup: "follow-up" };
    const choice = made("fieldset", { class: "choice" }, made("legend", {}, "cloud"));
    for (const [value, name] of Object.entries(names)) {
      const radio = made("input", { type: "radio", name: "cloud-picture", value, change: () => { picture = value; soon(); } });
      radio.checked = value === picture;
      choice.append(made("label", {}, radio, name));
    }
    const count = (name) => data.counts[name].toLocaleString("en");
    const legend = made("ul", { class: "swatches" });
    for (const [name, what] of [["kept", `in both (${count("kept")})`], ["removed", `source only (${count("removed")})`], ["added", `follow-up only (${count("added")})`],
      ["source", "output, source"], ["followup", "output, follow-up"], ["lost", "lost"], ["gained", "gained"], ["zone", "region, keep zone"]]) {
      const swatch = made("i");
      swatch.style.background = `rgb(${COLOURS[name].map((v) => Math.round(255 * v)).join(" ")})`;
      if (shown[name].places.length) legend.append(made("li", {}, swatch, what));
    }
    const left = data.left_out ? ` ${data.left_out.toLocaleString("en")} points are not drawn.` : "";
    box.append(choice, canvas, legend, made("p", { class: "note" }, `Drag to turn, shift and drag to move; click, then use the wheel to zoom; rings every 10 m.${left}`));
    const watcher = new ResizeObserver(soon);
    watcher.observe(canvas);
    return () => { watcher.disconnect(); screen.end(); };
  };
})();
