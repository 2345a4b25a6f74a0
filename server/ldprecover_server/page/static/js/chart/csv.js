// Files made in the browser, for the viewer to keep.

// Characters that start a formula in spreadsheets, full-width forms included, as in the server's CSV.
const RUN = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** A text that no spreadsheet runs as a formula: an apostrophe precedes one that would be. */
export function guarded(text) {
  return RUN.test(text) ? `'${text}` : text;
}

/** Texts are quoted, because some programs split at semicolons; numbers are not. */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return `"${guarded(String(value)).replaceAll('"', '""')}"`;
}

/** CSV of columns `{title, name, value(row)}` and rows; the header has the names, else the titles. */
export function csv(columns, rows) {
  const lines = [
    columns.map((column) => cell(column.name ?? column.title)),
    ...Array.from(rows, (row) => columns.map((column) => cell(column.value(row)))),
  ];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** Download a file. */
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function downloadCsv(name, columns, rows) {
  download(`${name}.csv`, new Blob(["\ufeff", csv(columns, rows)], { type: "text/csv" }));
}
