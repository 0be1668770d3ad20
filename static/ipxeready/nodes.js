// The switch of the list of nodes. "Ask now" asks them after the page is there, and again while somebody looks; the choice is
// remembered by this browser. Without this module it is a plain link, and the page comes when they were asked.
const KEY = "ipxeready.live";
const EVERY = 15000;
const on = document.querySelector('[data-ask="on"]');
const off = document.querySelector('[data-ask="off"]');
const status = on?.parentElement.querySelector("[role=status]");
let timer = 0;
let asking = null;

function mark(live) {
  on.toggleAttribute("aria-current", false);
  off.toggleAttribute("aria-current", false);
  (live ? on : off).setAttribute("aria-current", "true");
}

async function ask() {
  clearTimeout(timer);
  if (document.hidden) {
    // Nobody looks: when somebody does, it goes on.
    document.addEventListener("visibilitychange", ask, { once: true });
    return;
  }
  asking?.abort();
  const mine = (asking = new AbortController());
  if (!status.textContent) status.textContent = on.dataset.asking;
  try {
    const answer = await fetch(on.href, { headers: { Accept: "text/html" }, signal: mine.signal });
    if (answer.redirected) return location.reload(); // logged out
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const old = document.getElementById("nodes");
    const fresh = page.getElementById("nodes");
    // Whoever is on a link or a button in it keeps it.
    if (old && fresh && !old.contains(document.activeElement)) old.replaceWith(document.adoptNode(fresh));
    status.textContent = on.dataset.asked;
  } catch {
    if (mine.signal.aborted) return;
    status.textContent = on.dataset.failed;
  }
  timer = setTimeout(ask, EVERY);
}

function remember(live) {
  try {
    if (live) localStorage.setItem(KEY, "1");
    else localStorage.removeItem(KEY);
  } catch {
    // A browser that keeps nothing: it holds for this page.
  }
}

function remembered() {
  try {
    return localStorage.getItem(KEY) === "1";
  } catch {
    return false;
  }
}

if (on && off && status) {
  on.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    remember(true);
    mark(true);
    status.textContent = on.dataset.asking;
    ask();
  });
  off.addEventListener("click", () => remember(false));
  if (on.hasAttribute("aria-current")) timer = setTimeout(ask, EVERY);
  else if (remembered()) {
    mark(true);
    ask();
  }
}
