// Loads the page again where a part of it did not arrive: browsers do not ask for a module twice.
// A classic script, so that it runs before the modules.
const TRIES = 5;
let hasFailed = false;

function say(text) {
  const line = document.querySelector("#reload") ?? document.createElement("p");
  Object.assign(line, { id: "reload", role: "alert", textContent: text });
  document.body.prepend(line);
}

function retry() {
  const tries = history.state?.reloads ?? 0;
  if (tries === TRIES) return say("A part of this page does not arrive. Reload it later.");
  history.replaceState({ ...history.state, reloads: tries + 1 }, "");
  say("A part of this page did not arrive. It is loaded again in a moment.");
  const seconds = 2 ** tries * (1 + Math.random());
  return setTimeout(() => location.reload(), 1000 * seconds);
}

addEventListener(
  "error",
  ({ target }) => {
    if (hasFailed || !(target instanceof HTMLScriptElement || target instanceof HTMLLinkElement))
      return;
    hasFailed = true;
    if (document.body) retry();
    else addEventListener("DOMContentLoaded", retry);
  },
  true,
);
