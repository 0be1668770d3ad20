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

async function begin(file, name) {
  const { told } = await ask("GET", form.dataset.api);
  const found = told.uploads.find((each) => each.name === name && each.size === file.size);
  if (found) {
    show(form.dataset.goingOn, found.offset, file.size);
    return found;
  }
  const sha256 = field("sha256").value.trim();
  return (await json("POST", form.dataset.api, { name, size: file.size, ...(sha256 && { sha256 }) })).told;
}

async function send(file, upload) {
  const path = `${form.dataset.api}/${upload.id}`;
  let at = upload.offset;
  let wait = 1000;
  while (at < file.size && !stopped) {
    try {
      const piece = file.slice(at, at + PIECE);
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
      if (!passes(error) && at === before) throw error;
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
  await send(file, begun);
  if (stopped) return null;
  return finish(begun, name);
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
