// QR codes of addresses.

import { fill, h, svg } from "../dom.js";

/** Return an element in which the QR code of an address is drawn once its library is loaded. */
export function qrCode(address) {
  const place = h("div", { class: "qr" });
  draw(place, address);
  return place;
}

async function draw(place, address) {
  const { encode } = await import("../../vendor/uqr.mjs");
  const { data, size } = encode(address, { border: 2 });
  const path = data
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")))
    .join("");
  const code = svg(
    "svg",
    {
      viewBox: `0 0 ${size} ${size}`,
      role: "img",
      "aria-label": `QR code of ${address}`,
      "shape-rendering": "crispEdges",
    },
    svg("rect", { width: size, height: size, fill: "#fff" }),
    svg("path", { d: path, fill: "#000" }),
  );
  fill(place, code);
}
