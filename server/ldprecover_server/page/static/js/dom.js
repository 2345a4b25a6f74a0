// Makes elements. Everything that is shown is inserted as text, so HTML in a label is never run.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open"]);

/**
 * Make an element. `attributes`: `class`, `on<event>` handlers, properties such as `value`, anything else an attribute;
 * null, undefined and false are left out. `children`: nodes, texts, numbers, lists of these; null and false are left out.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  const later = [];
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (PROPERTIES.has(name)) later.push([name, value]);
    else if (value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...texts(children));
  // Set these last: a select's value must be one of its options.
  for (const [name, value] of later) element[name] = value;
  return element;
}

/** Make an SVG element, for the marks of legends. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...texts(children));
  return element;
}

function texts(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

let fields = 0;

/** A control with its label and hint: `field("Epsilon", h("input", …))`. */
export function field(label, control, help = null) {
  control.id ||= `field-${++fields}`;
  if (help) control.setAttribute("aria-describedby", `${control.id}-help`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: control.id }, label),
    control,
    help && h("span", { class: "quiet", id: `${control.id}-help` }, help),
  );
}

/** A message box: kind is "", "good" or "bad"; screen readers announce a bad one immediately. */
export function notice(kind, ...children) {
  return h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : null }, ...children);
}

/** Announce a text to screen readers. */
export function announce(text) {
  document.getElementById("live").textContent = text;
}

/** Show a small box below an element until the viewer looks elsewhere; returns a function that closes it. */
export function popup(anchor, ...children) {
  const box = h("div", { class: "popup", popover: "auto" }, children);
  anchor.after(box);
  box.addEventListener("toggle", ({ newState }) => {
    if (newState === "closed") box.remove();
  });
  box.showPopover({ source: anchor });
  const place = anchor.getBoundingClientRect();
  const below = place.bottom + 4 + box.offsetHeight < innerHeight;
  box.style.left = `${Math.max(8, Math.min(place.left, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.max(8, below ? place.bottom + 4 : place.top - 4 - box.offsetHeight)}px`;
  return () => box.isConnected && box.hidePopover();
}

/** A button that calls `act`, with further attributes. */
export function action(text, act, attributes = {}) {
  return h("button", { type: "button", onclick: act, ...attributes }, text);
}

/** A button that opens a menu of `[text, act, kind]`; null entries are left out. */
export function menu(label, entries) {
  const open = ({ currentTarget }) => {
    const close = popup(
      currentTarget,
      entries()
        .filter(Boolean)
        .map(([text, act, kind]) =>
          action(
            text,
            () => {
              close();
              act();
            },
            { class: kind },
          ),
        ),
    );
  };
  return action("⋯", open, { class: "menu", "aria-haspopup": "true", "aria-label": label });
}

/** Show a dialog over the page; `build(close)` gives its content. Resolves with what `close` is given, else null. */
export function dialog(title, build) {
  return new Promise((resolve) => {
    let answer = null;
    const close = (value = null) => {
      answer = value;
      box.close();
    };
    const id = `dialog-${Math.random().toString(36).slice(2)}`;
    const box = h("dialog", { "aria-labelledby": id }, h("h2", { id }, title), build(close));
    box.addEventListener("close", () => {
      box.remove();
      resolve(answer);
    });
    document.body.append(box);
    box.showModal();
  });
}
