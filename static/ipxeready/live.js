// Fills in what only nodes know: the page of `data-live` has the same parts (`data-part`) with their answers. Until then, and where it fails, the link leads there.
const place = document.querySelector("[data-live]");

async function fill() {
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(place.dataset.live, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of document.querySelectorAll("[data-part]")) {
      const fresh = page.querySelector(`[data-part="${CSS.escape(old.dataset.part)}"]`);
      // Whoever is on a link in it keeps it.
      if (fresh && !old.contains(document.activeElement)) old.replaceWith(document.adoptNode(fresh));
    }
  } catch {
    // The service restarts: the link is still there.
  } finally {
    place.removeAttribute("aria-busy");
  }
}

if (place) fill();
