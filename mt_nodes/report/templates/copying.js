/* SPDX-License-Identifier: Apache-2.0 */
/* A button that copies a command; also from a file, where the clipboard may be refused. */
function copying(words, label) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "copy", textContent: label });
  button.addEventListener("click", async () => {
    const before = button.textContent;
    try { await navigator.clipboard.writeText(words); } catch {
      const area = document.createElement("textarea");
      area.value = words;
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  });
  return button;
}
document.querySelectorAll(".step code").forEach((code) => code.after(copying(code.textContent, "copy")));
