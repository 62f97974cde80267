// What a page can do beyond being read: theme, copy, search, and marking where the reader is. Pages are complete without it.
"use strict";

const root = document.body.dataset.root;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Theme -------------------------------------------------------------------------------------------------------------

function stored(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key) || "";
    value ? localStorage.setItem(key, value) : localStorage.removeItem(key);
  } catch { /* storage may be forbidden; the choice then lasts for this page */ }
  return "";
}

function setUpTheme() {
  const choice = document.querySelector(".theme");
  const menu = choice.querySelector("select");
  choice.hidden = false;
  menu.value = stored("theme");
  menu.addEventListener("change", () => {
    stored("theme", menu.value);
    if (menu.value) document.documentElement.dataset.theme = menu.value;
    else delete document.documentElement.dataset.theme;
  });
}

// Code --------------------------------------------------------------------------------------------------------------

function setUpCopy() {
  const said = element("p", { className: "unseen" });
  said.setAttribute("role", "status");
  document.querySelector("main").append(said);
  for (const block of document.querySelectorAll("div.sourceCode")) {
    if (block.closest(".output")) continue;
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", async () => {
      await copy(block.querySelector("pre").innerText);
      button.textContent = said.textContent = "Copied";
      button.classList.add("done");
      setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; button.classList.remove("done"); }, 1500);
    });
    block.append(button);
  }
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

// What scrolls sideways must be reachable by keyboard, and nothing else should be.
function setUpScrolling() {
  const boxes = document.querySelectorAll("main pre, main .scroll, main .equation");
  const update = () => {
    for (const box of boxes) {
      if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  update();
  addEventListener("resize", update);
  document.addEventListener("toggle", update, true);
}

// Where the reader is -----------------------------------------------------------------------------------------------

function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const own = target.matches("section") ? target.querySelector(":scope > details.solution") : null;
  for (let fold = own || target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.scrollIntoView();
}

function setUpToc() {
  const links = new Map([...document.querySelectorAll(".toc a")].map((a) => [a.hash.slice(1), a]));
  if (!links.size) return;
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? seen.add(target.id) : seen.delete(target.id);
    const current = [...links.keys()].filter((id) => seen.has(id)).pop();
    for (const [id, a] of links) id === current ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current");
  }, { rootMargin: "-64px 0px -70% 0px" });
  for (const id of links.keys()) {
    const section = document.getElementById(id);
    if (section) watch.observe(section);
  }
  document.getElementById("toc").addEventListener("click", (event) => {
    const toc = event.currentTarget;
    if (event.target.closest("a") && toc.matches(":popover-open")) toc.hidePopover();
  });
  document.querySelector(".contents [aria-current]")?.scrollIntoView({ block: "nearest" });
}

// Printing shows what is folded, in browsers whose style sheets cannot.
function setUpPrint() {
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("main details:not([open])")];
    for (const fold of closed) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of closed) fold.open = false; });
}

// Search: the dialog comes when it is first needed --------------------------------------------------------------------

function loadScript(path) {
  return new Promise((resolve, reject) => {
    document.head.append(element("script", { src: root + path, onload: resolve, onerror: reject }));
  });
}

let search;
async function openSearch() {
  search ??= loadScript("theme/search.js").then(() => searchDialog());
  const { dialog, input, update } = await search;
  if (!dialog.open) dialog.showModal();
  input.select();
  update();
}

function setUpSearch() {
  const button = document.querySelector(".search-open");
  button.hidden = false;
  button.addEventListener("click", openSearch);
  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    const slash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (typing || !(slash || ((event.ctrlKey || event.metaKey) && event.key === "k"))) return;
    event.preventDefault();
    openSearch();
  });
}

setUpTheme();
setUpCopy();
setUpScrolling();
setUpToc();
setUpPrint();
setUpSearch();
openTarget();
addEventListener("hashchange", openTarget);
