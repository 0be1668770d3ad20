// The audit trail: reads older entries on as one scrolls, tells of new ones, opens an entry in place.
// Without it the same links lead from page to page.
const EVERY = 10_000;
const table = document.querySelector("#trail tbody");
const fresh = document.getElementById("fresh");
const dialog = document.getElementById("details");

async function fetched(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (answer.redirected) location.reload(); // logged out
  if (!answer.ok || answer.redirected) throw new Error(answer.status);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// --- older entries: when the link to them comes near, its page is put below this one.
const older = () => document.getElementById("older");
let reading = false;

async function readOn() {
  const link = older().querySelector("a[rel=next]");
  if (reading || !link || !table) return;
  reading = true;
  older().setAttribute("aria-busy", "true");
  try {
    const page = await fetched(link.href);
    const had = older().contains(document.activeElement);
    const rows = [...page.querySelectorAll("#trail tbody tr")].map((row) => document.adoptNode(row));
    table.append(...rows);
    observer.unobserve(older());
    older().replaceChildren(...document.adoptNode(page.getElementById("older")).childNodes);
    if (had) (older().querySelector("a") ?? rows[0]?.querySelector("a"))?.focus({ preventScroll: true });
    // Observed anew it is reported again if it is still in sight.
    observer.observe(older());
  } catch {
    // The link stays, for whoever wants to try again.
  } finally {
    reading = false;
    older().removeAttribute("aria-busy");
  }
}

const observer = new IntersectionObserver(
  (seen) => {
    if (seen.some((each) => each.isIntersecting)) readOn();
  },
  { rootMargin: "600px" },
);
if (table) observer.observe(older());

// --- the address says where one is, so that coming back, or a copy of it, leads there.
let waiting = 0;

function remember() {
  waiting = 0;
  const address = new URL(location.href);
  const rows = [...table.rows];
  const first = rows.findIndex((row) => row.getBoundingClientRect().bottom > 0);
  const top = rows[first];
  if (first > 0) {
    address.searchParams.set("before", Number(top.dataset.id) + 1);
    address.searchParams.delete("after");
  } else if (!startedBelow) {
    address.searchParams.delete("before");
  } else {
    address.search = startedBelow;
  }
  if (address.href !== location.href) history.replaceState(history.state, "", address);
}

const startedBelow = /[?&](before|after)=/.test(location.search) ? location.search : "";
if (table) {
  // The address holds the place; the browser's own memory of it belongs to a longer page.
  history.scrollRestoration = "manual";
  const came = performance.getEntriesByType("navigation")[0]?.type;
  if (startedBelow && came !== "navigate") table.rows[0]?.scrollIntoView();
  addEventListener("scroll", () => (waiting ||= setTimeout(remember, 300)), { passive: true });
  addEventListener("pagehide", remember);
}

// --- new entries: told, and shown when asked for.
async function lookForNew() {
  try {
    if (!document.hidden) {
      const query = fresh.dataset.query ? `&${fresh.dataset.query}` : "";
      const answer = await fetch(`${fresh.dataset.address}?since=${fresh.dataset.since}${query}`);
      if (answer.ok && !answer.redirected) {
        const { count, words } = await answer.json();
        if (count) {
          const link = document.createElement("a");
          link.href = fresh.dataset.list || location.pathname;
          link.textContent = words;
          if (fresh.textContent !== words) fresh.replaceChildren(link);
        }
      }
    }
  } catch {
    // The service restarts: the next time.
  }
  setTimeout(lookForNew, EVERY);
}
setTimeout(lookForNew, EVERY);

// --- one entry: in a dialog, so that the place in the list is kept.
async function open(link) {
  try {
    const page = await fetched(link.href);
    dialog.firstElementChild.replaceChildren(document.adoptNode(page.getElementById("entry")));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  } catch {
    location.href = link.href;
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.entry");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  open(link);
});
