// The batch board: remembers ticks and nodes of all pages of the list, and lets nodes and rows be dragged.
// What a choice means (numbers, masters, who gets which node) the server says; without this module the form does all of it.
const KEY = "ipxeready.board";
const board = document.querySelector("#board");

// --- what is chosen: worker -> node, kept for this tab -----------------------------------------------------

const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
const chosen = new Map(kept.chosen ?? []);

function remember() {
  const fields = Object.fromEntries(FIELDS.map((name) => [name, board.elements[name].value]));
  sessionStorage.setItem(KEY, JSON.stringify({ chosen: [...chosen], fields }));
}

/** `*node-a pc1 pc2 *node-b pc3`, as the server reads it. */
function written() {
  const nodes = new Map();
  for (const [worker, node] of chosen) nodes.set(node, [...(nodes.get(node) ?? []), worker]);
  return [...nodes].map(([node, workers]) => [`*${node}`, ...workers].join(" ")).join(" ");
}

function read(text) {
  const found = new Map();
  let node = "";
  for (const word of text.split(" ").filter(Boolean)) {
    if (word.startsWith("*")) node = word.slice(1);
    else found.set(word, node);
  }
  return found;
}

// --- rows ------------------------------------------------------------------------------------------------------

const FIELDS = ["os", "type", "name", "size"];
const rows = () => [...board.querySelectorAll("tr[data-worker]")];
const box = (row) => row.querySelector("input[type=checkbox]");
const place = (row) => row.querySelector("select");
let anchor = null;

/** The page as the choice says. */
function show() {
  for (const row of rows()) {
    box(row).checked = chosen.has(row.dataset.worker);
    put(place(row), chosen.get(row.dataset.worker) ?? place(row).value);
  }
}

/** Choose a value that a list may not have (a node that is disabled by now). */
function put(list, value) {
  list.value = value;
  if (list.value !== value) list.value = "";
}

function tick(row, on) {
  box(row).checked = on;
  if (on) chosen.set(row.dataset.worker, place(row).value);
  else chosen.delete(row.dataset.worker);
}

/** All rows from the last one that was ticked to this one become as this one. */
function range(row, on) {
  const all = rows();
  const [from, to] = [all.indexOf(anchor), all.indexOf(row)];
  const part = from < 0 ? [row] : all.slice(Math.min(from, to), Math.max(from, to) + 1);
  for (const each of part) tick(each, on);
}

function give(workers, node) {
  for (const worker of workers) chosen.set(worker, node);
  show();
  changed();
}

// --- the server's words ------------------------------------------------------------------------------------------

const count = () => document.querySelector("#count");
let timer = 0;
let asked = 0;

function say(lines) {
  count().replaceChildren(
    ...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })),
  );
}

/** Ask what the choice comes to; with `more` also who gets which node. */
async function plan(more = {}) {
  clearTimeout(timer);
  const turn = ++asked;
  const before = new Map(chosen);
  const form = new FormData();
  form.set("csrfmiddlewaretoken", board.elements.csrfmiddlewaretoken.value);
  form.set("chosen", written());
  form.set("os", board.elements.os.value);
  for (const [name, values] of Object.entries(more)) for (const value of values) form.append(name, value);
  const answer = await json(board.dataset.plan, { method: "POST", body: form });
  if (!answer) return;
  for (const worker of answer.gone ?? []) chosen.delete(worker);
  // What somebody ticked or chose meanwhile stays.
  for (const [worker, node] of read(answer.placed ?? ""))
    if (chosen.has(worker) && chosen.get(worker) === before.get(worker)) chosen.set(worker, node);
  show();
  remember();
  if (turn === asked) {
    say(answer.facts);
    masters();
  } else if (answer.placed) changed();
}

async function json(address, options = {}) {
  try {
    const answer = await fetch(address, { headers: { Accept: "application/json" }, ...options });
    if (answer.redirected) return void location.reload(); // logged out
    const body = await answer.json();
    if (answer.ok) return body;
    say([words(body.detail)]);
  } catch {
    say([board.dataset.lost]);
  }
  return undefined;
}

const words = (detail) => (typeof detail === "string" ? detail : Object.values(detail ?? {}).flat().join(" "));

function changed() {
  remember();
  clearTimeout(timer);
  timer = setTimeout(plan, 150);
}

// --- masters: only what every chosen node has ----------------------------------------------------------------------

let shownFor = null;

async function masters() {
  if (board.elements.type.value !== "master") return;
  const nodes = [...new Set(chosen.values())].filter(Boolean).sort();
  const key = nodes.join(" ");
  if (key === shownFor) return;
  shownFor = key;
  const query = new URLSearchParams(nodes.map((node) => ["node", node]));
  const answer = await json(`${board.dataset.masters}?${query}`);
  if (!answer || shownFor !== key) return;
  const list = board.elements.name;
  const before = list.value || kept.fields?.name || "";
  list.replaceChildren(
    new Option(board.dataset.later, ""),
    ...answer.masters.map((master) => new Option(master.label, master.name)),
  );
  put(list, before);
  document.querySelector("#masters").textContent = answer.words.join("; ");
  remember();
}

function fitted() {
  for (const field of board.querySelectorAll("[data-for]"))
    field.hidden = field.dataset.for !== board.elements.type.value;
}

async function nodes() {
  const answer = await json(board.dataset.nodes);
  for (const [node, told] of Object.entries(answer ?? {})) {
    const line = card(node)?.querySelector(".told");
    if (!line) continue;
    line.textContent = told.words;
    line.classList.toggle("bad", !told.ok);
  }
}

const card = (node) => board.querySelector(`.node[data-node="${CSS.escape(node)}"]`);

// --- dragging: a node on a row; a row, or all that are chosen, on a node ----------------------------------------

const DISTANCE = 6; // pixels before a press is a drag
const EDGE = 48; // pixels from the edge at which the page scrolls along
let drag = null;

function begin(event) {
  if (event.button || !event.target.closest(".grip, .node > header")) return;
  if (event.target.closest("a")) return;
  const row = event.target.closest("tr[data-worker]");
  const node = event.target.closest(".node:not([data-off])");
  if (!row && !node) return;
  drag = { row, node: row ? null : node, x: event.clientX, y: event.clientY, id: event.pointerId, ghost: null };
  event.preventDefault();
  board.setPointerCapture(event.pointerId);
}

function over(event) {
  const found = document.elementFromPoint(event.clientX, event.clientY);
  return found?.closest(drag.row ? "#board .node:not([data-off])" : "#board tr[data-worker]") ?? null;
}

function move(event) {
  if (!drag || event.pointerId !== drag.id) return;
  if (!drag.ghost) {
    if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < DISTANCE) return;
    drag.ghost = document.createElement("div");
    drag.ghost.className = "ghost";
    drag.ghost.textContent = drag.row ? dragged().join(", ").slice(0, 80) : drag.node.dataset.node;
    document.body.append(drag.ghost);
  }
  drag.ghost.style.translate = `${event.clientX + 12}px ${event.clientY + 12}px`;
  if (event.clientY < EDGE) scrollBy(0, -EDGE / 2);
  if (event.clientY > innerHeight - EDGE) scrollBy(0, EDGE / 2);
  mark(over(event));
}

function mark(target) {
  for (const each of board.querySelectorAll(".over")) if (each !== target) each.classList.remove("over");
  target?.classList.add("over");
}

/** A row that is ticked brings all the chosen along. */
function dragged() {
  const worker = drag.row.dataset.worker;
  return chosen.has(worker) ? [...chosen.keys()] : [worker];
}

function drop(event) {
  if (!drag || event.pointerId !== drag.id) return;
  const target = drag.ghost && event.type === "pointerup" ? over(event) : null;
  if (target && drag.row) give(dragged(), target.dataset.node);
  else if (target) give([target.dataset.worker], drag.node.dataset.node);
  drag.ghost?.remove();
  mark(null);
  drag = null;
}

// --- what people do ------------------------------------------------------------------------------------------------

function clicked(event) {
  const row = event.target.closest("tr[data-worker]");
  if (row && event.target === box(row)) {
    if (event.shiftKey) range(row, box(row).checked);
    else tick(row, box(row).checked);
    anchor = row;
    changed();
    return;
  }
  const button = event.target.closest("button");
  if (button?.name === "take" || button?.name === "share") {
    event.preventDefault();
    if (!chosen.size) return say([board.dataset.none]);
    const on = [...board.querySelectorAll("input[name=on]:checked")].map((each) => each.value);
    if (button.name === "share" && !on.length) return say([board.dataset.nobody]);
    plan(button.name === "take" ? { take: [button.value] } : { share: ["1"], on });
  } else if (button?.dataset.do) all(button.dataset.do);
}

async function all(what) {
  if (what === "page") for (const row of rows()) tick(row, true);
  if (what === "none") {
    chosen.clear();
    show();
  }
  if (what === "all") {
    const answer = await json(board.dataset.ids);
    for (const worker of answer?.ids ?? []) if (!chosen.has(worker)) chosen.set(worker, "");
    for (const row of rows()) if (!box(row).checked) tick(row, true);
  }
  changed();
}

function pressed(event) {
  const row = event.target.closest("tr[data-worker]");
  if (!row || event.target !== box(row)) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const next = rows()[rows().indexOf(row) + step];
  if (!next) return;
  event.preventDefault();
  if (event.shiftKey) {
    // The keyboard's range: everything walked over becomes as the row where it began.
    tick(next, box(row).checked);
    anchor = next;
    changed();
  }
  box(next).focus();
}

function altered(event) {
  const row = event.target.closest("tr[data-worker]");
  if (row && event.target === place(row)) give([row.dataset.worker], place(row).value);
  else if (FIELDS.includes(event.target.name)) {
    fitted();
    changed();
  }
}

function start() {
  const sent = board.elements.chosen.value;
  if (sent) {
    // Back from a question.
    chosen.clear();
    for (const [worker, node] of read(sent)) chosen.set(worker, node);
  }
  for (const [name, value] of Object.entries(kept.fields ?? {})) put(board.elements[name], value);
  board.elements.size.value = kept.fields?.size ?? board.elements.size.value;
  for (const each of board.querySelectorAll(".grip, #tools")) each.hidden = false;
  board.addEventListener("click", clicked);
  board.addEventListener("keydown", pressed);
  board.addEventListener("change", altered);
  board.addEventListener("pointerdown", begin);
  board.addEventListener("pointermove", move);
  board.addEventListener("pointerup", drop);
  board.addEventListener("pointercancel", drop);
  board.addEventListener("submit", () => (board.elements.chosen.value = written()));
  addEventListener("pageshow", show);
  fitted();
  show();
  if (chosen.size) plan();
  else masters();
  nodes();
}

if (board) start();
// A batch has begun: the board is empty again.
if (document.querySelector("[data-begun]")) {
  sessionStorage.removeItem(KEY);
  history.replaceState(null, "", location.pathname);
}
