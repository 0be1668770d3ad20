// Renews the part of the page that says `data-refresh` (seconds) by the same part of the same page, until that says it no more.
const part = () => document.querySelector("[data-refresh]");

async function renew() {
  const old = part();
  if (!old) return;
  // Nobody looks: the page is renewed when somebody does.
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById(old.id);
        // Whoever is on a link or a button in it keeps it.
        if (fresh && !old.contains(document.activeElement)) old.replaceWith(document.adoptNode(fresh));
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

setTimeout(renew, 1000 * Number(part()?.dataset.refresh ?? 1));
