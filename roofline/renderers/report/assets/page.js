"use strict";
// What the page holds beside its pictures and tables: of each run its ops, its points and its timeline. Every text in
// it was written by roofline; nothing is computed here but what is shown and in which order. All of it is put into the
// page as text, never as HTML.
const given = JSON.parse(document.getElementById("data").textContent).runs;
const tables = [];
const pictures = [];
const textOf = (column, row) => column.texts[column.rows[row]];
const cut = (words, most, end) =>
  words.length <= most ? words : end ? "…" + words.slice(1 - most) : words.slice(0, most - 1) + "…";

function make(element, words, look) {
  const made = document.createElement(element);
  if (words !== undefined) made.textContent = words;
  if (look) made.className = look;
  return made;
}

// A name from a profile: apart from the text around it, cut, and whole in its title; it may go on in a new line where a
// part of it ends.
function nameOf(words, most, end) {
  const made = make("bdi");
  for (const part of cut(words, most, end).split(/(?<=[/,_:])(?=\w)/)) made.append(part, make("wbr"));
  if (words.length > most) made.title = words;
  return made;
}

{
  const root = document.documentElement;

  // ---- light and dark; what was chosen is kept where the browser lets a file keep anything
  const theme = document.getElementById("theme");
  const shine = (chosen) => {
    if (chosen === "auto") delete root.dataset.theme;
    else root.dataset.theme = chosen;
  };
  try {
    const kept = localStorage.getItem("roofline-theme");
    if (["auto", "light", "dark"].includes(kept)) theme.value = kept;
  } catch { /* a file may have no storage */ }
  shine(theme.value);
  theme.addEventListener("change", () => {
    shine(theme.value);
    try { localStorage.setItem("roofline-theme", theme.value); } catch { /* as above */ }
  });

  // ---- one table of several, one run of several
  for (const choice of document.querySelectorAll("[data-panels]")) {
    const panels = document.querySelector(`[data-of="${choice.dataset.panels}"]`).children;
    const show = () => {
      const chosen = choice.querySelector("input:checked").value;
      for (const panel of panels) panel.classList.toggle("later", panel.dataset.panel !== chosen);
    };
    choice.addEventListener("change", show);
    show();
  }
  const runs = document.getElementById("runs");
  if (runs) {
    const show = () => {
      const chosen = runs.querySelector("input:checked").value;
      for (const part of document.querySelectorAll("[data-run]")) part.classList.toggle("later", part.dataset.run !== chosen);
    };
    runs.addEventListener("change", show);
    show();
  }

  // ---- heads stick below the bar, however many lines it has; a table that is wider than its place says so
  const bar = document.querySelector(".topbar");
  new ResizeObserver(() => root.style.setProperty("--bar", `${bar.offsetHeight}px`)).observe(bar);
  const widths = new Map();
  const reach = (part) => part.classList.toggle("tall", part.scrollHeight > part.clientHeight);
  const fit = (parts) => {
    for (const part of parts) part.classList.remove("sideways");
    const wide = parts.filter((part) => part.scrollWidth > part.clientWidth);
    for (const part of wide) part.classList.add("sideways");
    parts.forEach(reach);
  };
  const seen = new ResizeObserver((changes) => {
    const parts = changes.map((change) => change.target).filter((part) => widths.get(part) !== part.clientWidth);
    for (const part of parts) widths.set(part, part.clientWidth);
    if (parts.length) requestAnimationFrame(() => fit(parts));
  });
  const heights = new ResizeObserver((changes) => {
    for (const { target } of changes) if (target.isConnected) reach(target.parentElement);
  });
  for (const part of document.querySelectorAll(".scroll")) {
    seen.observe(part);
    for (const content of part.children) heights.observe(content);
  }

  // ---- what is seen first is laid out first; the rest in idle time, so that a picture of the whole page has it all
  const rest = [...document.querySelectorAll("section")];
  const layOut = () => {
    if (!rest.length) return;
    rest.shift().classList.add("laid-out");
    requestIdleCallback(layOut);
  };
  addEventListener("load", () => requestIdleCallback(layOut));

  // ---- modules
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-fold]");
    if (!button) return;
    const tree = button.closest("p").nextElementSibling;
    for (const part of tree.querySelectorAll("details")) part.open = button.dataset.fold === "open";
  });

  // ---- paper has everything: folded parts, and every row
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const part of folded) part.open = true;
    for (const table of tables) if (table) table.show(true);
  });
  addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
    for (const table of tables) if (table) table.show(false);
  });
  document.getElementById("print").addEventListener("click", () => print());
}
