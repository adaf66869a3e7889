/* SPDX-License-Identifier: Apache-2.0 */
"use strict";
/* Reads what report/page_data.py wrote: its header, with the arrays by their names. */
async function unpacked(text) {
  const KINDS = {
    Uint8Array, Uint16Array, Uint32Array, Int16Array, Int32Array, Float32Array, Float64Array,
  };
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const whole = await new Response(stream).arrayBuffer();
  const start = 4 + new DataView(whole).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 4, start - 4)));
  const arrays = header.arrays.map(([name, kind, size, at]) => [name, new KINDS[kind](whole, start + at, size)]);
  return { ...header, ...Object.fromEntries(arrays) };
}

/* Makes an element; texts among the children stay texts, whatever they hold. */
function made(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}
