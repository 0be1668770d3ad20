// Sends a file to a storage node in pieces and goes on after errors, a reload or another day. Without this the same form sends it in one go.
const PIECE = 8 * 1024 * 1024;
const form = document.getElementById("upload");
const field = (name) => form.elements[`upload-${name}`];
const state = form?.querySelector(".state");
const alertBox = form?.querySelector("[role=alert]");
let stopped = false;

class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

function words(detail) {
  if (detail && typeof detail === "object") {
    return "error" in detail ? detail.error : Object.values(detail).flat().map(words).join(" ");
  }
  return String(detail);
}

async function ask(method, path, body, headers = {}) {
  const token = form.elements.csrfmiddlewaretoken.value;
  const answer = await fetch(path, {
    method,
    body,
    headers: { Accept: "application/json", "X-CSRFToken": token, ...headers },
  });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, words(told.detail ?? answer.statusText));
  return { status: answer.status, told, job: answer.headers.get("Location") };
}

const json = (method, path, data, headers) =>
  ask(method, path, JSON.stringify(data), { "Content-Type": "application/json", ...headers });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function show(text, done, total) {
  const bar = state.querySelector("progress");
  state.hidden = false;
  if (total) bar.value = done / total;
  else bar.removeAttribute("value");
  const far = total && done < total ? ` ${((100 * done) / total).toFixed(1)} %` : "";
  state.querySelector("span").textContent = text + far;
}

// What may pass by itself: no connection, a service that restarts, a busy node. A full disk is for people.
const passes = (error) => !(error instanceof Refused) || [502, 503, 504].includes(error.status);

// What was sent is summed up piece by piece and kept by the browser; a file that is to go on is read again as far, and
// goes on only with the same sum. A sum of our own, since plain HTTP has no crypto.subtle: it guards against mistakes.
class Sum {
  from = 0;
  at = 0;
  a = 0x9e3779b9;
  b = 0x85ebca6b;

  async add(file) {
    this.bytes = await file.slice(this.at, this.at + PIECE).arrayBuffer();
    const words = new Uint32Array(this.bytes, 0, this.bytes.byteLength >> 2);
    for (let i = 0; i < words.length; i++) this.mix(words[i]);
    for (const byte of new Uint8Array(this.bytes, words.byteLength)) this.mix(byte);
    this.from = this.at;
    this.at += this.bytes.byteLength;
  }

  mix(word) {
    this.a = Math.imul(((this.a << 13) | (this.a >>> 19)) ^ word, 0x9e3779b1);
    this.b = Math.imul(((this.b << 17) | (this.b >>> 15)) + word, 0x85ebca77);
  }

  toString() {
    return `${this.at} ${this.a >>> 0} ${this.b >>> 0}`;
  }
}

// Without a storage (a browser may forbid it) every upload begins anew.
function kept(act) {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
}

const key = (id) => `upload ${form.dataset.api}/${id}`;
const remember = (id, sum) => kept((storage) => storage.setItem(key(id), String(sum)));
const forget = (id) => kept((storage) => storage.removeItem(key(id)));

function forgetOthers(uploads) {
  const known = new Set(uploads.map((each) => key(each.id)));
  const old = kept((storage) => Object.keys(storage)) ?? [];
  for (const each of old) if (each.startsWith(key("")) && !known.has(each)) kept((storage) => storage.removeItem(each));
}

// The sum of what is there, when it is the beginning of this very file; else null.
async function sumThere(upload, file) {
  const noted = kept((storage) => storage.getItem(key(upload.id)));
  if (!noted || upload.size !== file.size) return null;
  const sum = new Sum();
  while (sum.at < Math.min(Number.parseInt(noted), file.size) && !stopped) {
    show(form.dataset.comparing, sum.at, file.size);
    await sum.add(file);
  }
  return String(sum) === noted && sum.from <= upload.offset && upload.offset <= sum.at ? sum : null;
}

async function begin(file, name) {
  const { told } = await ask("GET", form.dataset.api);
  forgetOthers(told.uploads);
  const found = told.uploads.find((each) => each.name.toLowerCase() === name.toLowerCase());
  if (found) {
    const sum = found.name === name ? await sumThere(found, file) : null;
    if (stopped) return null;
    if (sum) {
      show(form.dataset.goingOn, found.offset, file.size);
      return { ...found, sum };
    }
    // It may be somebody else's, and under way.
    if (!confirm(`${found.name}: ${form.dataset.other}`)) return null;
    await ask("DELETE", `${form.dataset.api}/${found.id}`);
    forget(found.id);
  }
  const sha256 = field("sha256").value.trim();
  const begun = await json("POST", form.dataset.api, { name, size: file.size, ...(sha256 && { sha256 }) });
  return { ...begun.told, sum: new Sum() };
}

async function send(file, { id, offset, sum }) {
  const path = `${form.dataset.api}/${id}`;
  let at = offset;
  let wait = 1000;
  while (at < file.size && !stopped) {
    if (at === sum.at) {
      await sum.add(file);
      remember(id, sum);
    }
    try {
      // The very bytes that were summed up.
      const piece = new Uint8Array(sum.bytes, at - sum.from);
      const { told } = await ask("PATCH", `${path}?offset=${at}`, piece, {
        "Content-Type": "application/octet-stream",
      });
      at = told.offset;
      wait = 1000;
      show(form.dataset.sending, at, file.size);
    } catch (error) {
      if (!passes(error) && error.status !== 409 && error.status !== 400) throw error;
      const before = at;
      if (passes(error)) {
        show(form.dataset.waiting, at, file.size);
        await pause(wait);
        wait = Math.min(2 * wait, 30000);
      }
      // Part of the piece may have come: the node knows.
      at = await ask("GET", path).then(({ told }) => told.offset, (late) => {
        if (passes(late)) return before;
        throw late;
      });
      // Nor is anything added to what another window sent.
      if ((!passes(error) && at === before) || at < sum.from || at > sum.at) throw error;
    }
  }
}

async function finish(upload, name) {
  const sha256 = field("sha256").value.trim();
  show(form.dataset.verifying, 0, 0);
  const data = { name, ...(sha256 && { sha256 }) };
  const prefer = { Prefer: "respond-async, wait=5" };
  let { status, told, job } = await json("POST", `${form.dataset.api}/${upload.id}/finish`, data, prefer);
  if (status !== 202) return told;
  for (;;) {
    await pause(1000);
    try {
      told = (await ask("GET", job)).told;
    } catch (error) {
      if (passes(error)) continue;
      throw error;
    }
    if (told.state === "done") return told.result;
    if (told.error) throw new Refused(told.error.status, words(told.error.detail));
    show(form.dataset.verifying, told.done, told.total);
  }
}

async function upload() {
  const file = field("file").files[0];
  if (!file) throw new Error(form.dataset.choose);
  const name = field("name").value.trim() || file.name;
  const begun = await begin(file, name);
  if (!begun) return null;
  await send(file, begun);
  if (stopped) return null;
  const done = await finish(begun, name);
  forget(begun.id);
  return done;
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("[type=submit]");
  if (button.dataset.label) {
    stopped = true;
    return;
  }
  stopped = false;
  alertBox.hidden = true;
  state.hidden = true;
  button.dataset.label = button.value;
  button.value = form.dataset.stop;
  const leave = (leaving) => leaving.preventDefault();
  addEventListener("beforeunload", leave);
  try {
    const done = await upload();
    if (done) {
      show(`${done.name} ${form.dataset.done} ${done.sha256}`, 1, 1);
      // The list has it now; what was said stays to be read and compared.
      const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
      const [old, fresh] = [document, page].map((each) => each.getElementById("files"));
      if (old && fresh) old.replaceWith(document.adoptNode(fresh));
    }
  } catch (error) {
    alertBox.textContent = error.message;
    alertBox.hidden = false;
  } finally {
    removeEventListener("beforeunload", leave);
    button.value = button.dataset.label;
    delete button.dataset.label;
  }
});
