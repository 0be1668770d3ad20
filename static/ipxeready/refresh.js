// Renews the part of the page that says `data-refresh` (seconds) by the same part of the same page, until that says it no more.
// `data-refresh-from` is another address that shows the part, `data-refresh-first` the seconds until the first time.
const part = () => document.querySelector("[data-refresh]");

async function renew() {
  const old = part();
  if (!old) return;
  // Nobody looks: the page is renewed when somebody does.
  if (!document.hidden) {
    try {
      const address = new URL(old.dataset.refreshFrom ?? location.href, location.href);
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById(old.id);
        // Whoever is on a link or a button in it, or marks text, keeps it.
        const used = old.contains(document.activeElement) || !getSelection().isCollapsed;
        if (fresh && !used) old.replaceWith(document.adoptNode(fresh));
      } else if (answer.redirected) {
        location.reload(); // logged out
        return;
      }
    } catch {
      // The service restarts: the next time.
    }
  }
  const next = part();
  if (next) setTimeout(renew, 1000 * Number(next.dataset.refresh));
}

const first = part();
if (first) setTimeout(renew, 1000 * Number(first.dataset.refreshFirst ?? first.dataset.refresh));
